"""The page in a real browser, on the real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gateway_browser as browser
import pytest
import soundfile

pytestmark = [pytest.mark.server, pytest.mark.skipif(bool(browser.missing()), reason=browser.missing())]

ENTER, ESCAPE, TAB, SPACE = "\ue007", "\ue00c", "\ue004", " "
PHONE = (360, 740)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory, recording: Path) -> Iterator[Any]:
    microphone = tmp_path_factory.mktemp("microphone") / "speech.wav"
    samples, rate = soundfile.read(recording)
    soundfile.write(microphone, samples, rate, subtype="PCM_16")
    one = browser.Browser(tmp_path_factory.mktemp("profile"), microphone)
    yield one
    one.close()


@pytest.fixture
def page(window: Any, gateway: Any) -> Iterator[Any]:
    """The page as it opens; a test in which the browser complains fails."""
    window.open(f"{gateway.url}/")
    window.resize(1000, 900)
    yield window
    assert window.complaints() == []


def ask(page: Any, question: str) -> None:
    page.script("document.getElementById('question').focus()")
    page.press(*question, ENTER)


def wait_for_answer(page: Any) -> None:
    page.wait(lambda: page.text("#status") == "Done.", "no answer")


def test_a_recording_and_a_picture_are_heard_seen_and_answered(page: Any, recording: Path, picture: Path) -> None:
    page.type("#audio-file", str(recording))
    page.type("#image-file", str(picture))
    ask(page, "What do you hear and see?")
    wait_for_answer(page)
    assert "leisure to consider" in page.text("#heard")
    assert page.text("#seen") == "cup (60 %)"
    assert "cup" in page.text("#text") and "Dashwood" in page.text("#text")
    assert "with cup" in page.script("return document.getElementById('image').alt")


def test_the_box_is_drawn_where_the_cup_is(page: Any, picture: Path) -> None:
    page.type("#image-file", str(picture))
    ask(page, "What do you see?")
    wait_for_answer(page)
    image, box = (
        page.script("const r = document.querySelector(arguments[0]).getBoundingClientRect(); return r.toJSON()", one)
        for one in ("#image", "#boxes rect")
    )
    across = [(box[side] - image["left"]) / image["width"] for side in ("left", "right")]
    down = [(box[side] - image["top"]) / image["height"] for side in ("top", "bottom")]
    assert across == pytest.approx([150.38 / 600, 426.18 / 600], abs=0.01)
    assert down == pytest.approx([24.48 / 400, 305.44 / 400], abs=0.02)


def test_the_answer_comes_piece_by_piece_and_escape_stops_it(page: Any, engine: Any) -> None:
    page.script(
        "const real = window.fetch;"
        "window.fetch = (url, options) => real(url, {...options, body: JSON.stringify({...JSON.parse(options.body),"
        " max_tokens: 1900, min_tokens: 1900, ignore_eos: true})})"
    )
    page.script(
        "window.lengths = []; new MutationObserver(() =>"
        " window.lengths.push(document.getElementById('text').textContent.length))"
        ".observe(document.getElementById('text'), {childList: true})"
    )
    ask(page, "What do you hear?")
    page.wait(lambda: page.script("return window.lengths.length") > 5, "no pieces")
    page.press(ESCAPE)
    page.wait(lambda: page.text("#status") == "Stopped.", "not stopped")
    engine.wait_until_idle(5)
    assert page.script("return window.lengths") == sorted(page.script("return window.lengths"))


def test_the_microphone_is_heard(page: Any) -> None:
    page.script("document.getElementById('record').focus()")
    page.press(SPACE)
    page.wait(lambda: "Recording." in page.text("#status"), "not recording")
    page.script("window.began = performance.now()")
    page.wait(lambda: page.script("return performance.now() - window.began > 3000"), "time stands still")
    page.press(SPACE)
    page.wait(lambda: page.text("#audio-name") == "Your recording", "not recorded")
    ask(page, "What do you hear?")
    wait_for_answer(page)
    assert "Dashwood" in page.text("#heard")


def test_files_can_be_dropped(page: Any, picture: Path) -> None:
    data = list(picture.read_bytes())
    page.script(
        "const files = new DataTransfer();"
        "files.items.add(new File([new Uint8Array(arguments[0])], 'dropped.jpg', {type: 'image/jpeg'}));"
        "document.dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}))",
        data,
    )
    assert page.text("#image-name") == "dropped.jpg"
    page.script("document.getElementById('drop-image').click()")
    assert page.text("#image-name") == "No picture."
    assert page.script("return document.activeElement.id") == "image-file"


def test_all_of_it_is_reached_by_keyboard_in_order(page: Any) -> None:
    reached = []
    for _ in range(7):
        page.press(TAB)
        reached.append(page.script("return document.activeElement.id || document.activeElement.tagName"))
    assert reached == ["A", "record", "audio-file", "image-file", "question", "ask", "SUMMARY"]


def test_a_screen_reader_finds_a_name_for_every_control_and_hears_what_changes(page: Any) -> None:
    page.devtools("Accessibility.enable", {})
    nodes = page.devtools("Accessibility.getFullAXTree", {})["nodes"]

    def shown(node: dict[str, Any], key: str) -> str:
        return str(node.get(key, {}).get("value", ""))

    controls = [node for node in nodes if shown(node, "role") in ("button", "textbox", "link", "DisclosureTriangle")]
    names = [shown(node, "name") for node in controls if not node.get("ignored")]
    assert all(names) and len(names) == len(set(names))
    assert {"Record", "Choose a recording", "Choose a picture", "Question", "Ask", "Stop"} <= set(names)
    roles = {shown(node, "role"): shown(node, "name") for node in nodes}
    assert roles["heading"] and "status" in roles and "main" in roles
    assert page.script("return document.getElementById('text').getAttribute('aria-live')") == "polite"
    assert page.script("return document.getElementById('text').getAttribute('aria-busy')") == "false"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_schemes_and_fits_a_phone(
    page: Any, scheme: str, picture: Path, tmp_path: Path
) -> None:
    page.resize(*PHONE)
    page.devtools("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    page.type("#image-file", str(picture))
    page.screenshot(tmp_path / f"{scheme}.png")
    assert page.script("return document.documentElement.scrollWidth") <= PHONE[0]
    colours = page.script(
        "return ['body', '.lead', '#ask', '#stop', '#problem'].map((one) => {"
        " const style = getComputedStyle(document.querySelector(one));"
        " let under = document.querySelector(one);"
        " while (getComputedStyle(under).backgroundColor === 'rgba(0, 0, 0, 0)') under = under.parentElement;"
        " return [style.color, getComputedStyle(under).backgroundColor]; })"
    )
    assert all(contrast(*pair) >= 4.5 for pair in colours), [(pair, contrast(*pair)) for pair in colours]
    heights = page.script(
        "return [...document.querySelectorAll('button, .button')].filter((one) => one.offsetParent)"
        ".map((one) => one.getBoundingClientRect().height)"
    )
    assert min(heights) >= 44


def test_what_is_wrong_is_told_in_words(page: Any, tmp_path: Path) -> None:
    ask(page, "")
    page.wait(lambda: page.is_shown("#problem"), "no word of it")
    assert "write a question" in page.text("#problem")
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"RIFF no sound")
    page.type("#audio-file", str(broken))
    ask(page, "What?")
    page.wait(lambda: "can't play" in page.text("#problem"), "no word of it")
    page.complaints()  # of the player, about the file


def test_a_service_with_keys_asks_for_one(window: Any, start_gateway: Any) -> None:
    key = "a key of this test's own"
    with start_gateway(environment={"TRITONKIT_API_KEYS": key}) as gateway:
        window.open(f"{gateway.url}/")
        ask(window, "What do you hear?")
        window.wait(lambda: "API key" in window.text("#problem"), "no word of the key")
        assert window.is_shown("#key")
        window.type("#key", key)
        ask(window, "")
        wait_for_answer(window)
        assert "recording" in window.text("#text")
        window.complaints()  # of the 401


def contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours as the browser writes them."""
    lights = sorted((luminance(one), luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
