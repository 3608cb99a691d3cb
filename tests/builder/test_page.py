"""The page of a pipeline: whole, self-contained, and with everything that was thought."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from builder.__main__ import app

VOID = {"meta", "br", "img", "link"}


class Balanced(HTMLParser):
    """Notes the tags that are open, and the addresses that are named."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONKIT_CACHE", str(tmp_path / "cache"))

    def draw(*arguments: object, name: str = "x.html") -> str:
        done = CliRunner().invoke(app, ["draw", *(str(one) for one in arguments), "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        return (tmp_path / name).read_text(encoding="utf-8")

    return draw


def _read(page: str) -> Balanced:
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(drawn):
    page = drawn("assistant", "--gpu", "L40S", "--llm", "Qwen/Qwen3-8B")
    read = _read(page)
    assert read.addresses == []
    assert "<script" not in page and "@import" not in page and "url(" not in page
    assert "prefers-color-scheme: dark" in page and "@media print" in page and "width=device-width" in page


def test_the_page_tells_memory_settings_and_hand_over(drawn):
    text = " ".join(_read(drawn("assistant", "--gpu", "L40S", "--llm", "Qwen/Qwen3-8B")).text)
    for words in (
        "GPU 0: L40S, 44.34 GiB",
        "kv_cache_memory_bytes",
        "audio_features",
        "device copy",
        "the checks found nothing",
    ):
        assert words in text


def test_the_bar_of_a_gpu_is_as_long_as_its_parts(drawn):
    page = drawn("assistant", "--gpu", "L40S", "--llm", "Qwen/Qwen3-8B")
    widths = [float(one) for one in re.findall(r'<i style="width: ([\d.]+)%', page)]
    assert sum(widths) == pytest.approx(95, abs=0.2)


def test_what_does_not_fit_is_told_with_what_would(drawn):
    page = drawn("assistant", "--gpu", "L4", "--llm", "meta-llama/Llama-3.1-8B-Instruct")
    assert page.index(" % used") < page.index("Does not fit.") < page.index("a larger GPU: --gpu") < page.index("<svg")


def test_findings_stand_below_the_picture_with_the_numbers_of_their_pins(drawn, tmp_path):
    (tmp_path / "bad.py").write_text(
        "from builder import Model, Pipeline, Step\n"
        "a = Model(name='a', config={'backend': 'python', 'input': ['X FP32 [1]'], 'output': ['Y<b> FP32 [1]']})\n"
        "b = Model(name='b', config={'backend': 'python', 'input': ['Y INT32 [2]'], 'output': ['Z FP32 [1]']})\n"
        "P = Pipeline(name='p', inputs='X', outputs='Z', steps=[Step(model=a, input_map='X', output_map=['Y<b>=y']),"
        " Step(model=b, input_map='Y=y', output_map='Z')])\n"
    )
    page = drawn(tmp_path / "bad.py")
    read = _read(page)
    assert "TK401" in page and "TK402" in page
    assert page.count('class="number"') == page.count('<li><b class="bad">') + page.count('<li><b class="fair">') + (
        page.count('<li><b class="stream">')
    )
    assert "y" in read.text and "<b>=y" not in page


def test_the_ending_says_whether_it_is_a_page_or_a_picture_and_no_other_is_written(drawn, tmp_path):
    assert drawn("detect", name="x.svg").startswith("<svg ")
    refused = CliRunner().invoke(app, ["draw", "detect", "-o", str(tmp_path / "x.png")])
    assert refused.exit_code == 2 and "x.svg or x.html is needed" in refused.output
    assert not (tmp_path / "x.png").exists()
    assert json.dumps(drawn("detect", "--gpu", "L4", name="y.svg")).count("line good") >= 1
