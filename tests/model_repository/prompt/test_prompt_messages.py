"""What was heard, seen and asked become chat messages."""

import json
import time
from pathlib import Path

import pytest
from jinja2 import Template
from prompt_messages import PromptError, counts_from, load_template, messages_from, text_from

TEMPLATE = Path(__file__).parents[3] / "model_repository" / "prompt" / "1" / "template.jinja"
SEEN = json.dumps(
    {
        "width": 640,
        "height": 480,
        "detections": [{"label": label, "score": 0.9, "box": [0, 0, 1, 1]} for label in ("person", "bus", "person")],
    }
)
NOTHING_SEEN = '{"width": 1, "height": 1, "detections": []}'


@pytest.fixture(scope="module")
def template() -> Template:
    return load_template(TEMPLATE)


def user(template: Template, transcript: str | None, detections: str | None, question: str | None) -> str:
    messages = messages_from(template, transcript, detections, question)
    assert messages[-1]["role"] == "user"
    return messages[-1]["content"]


def test_everything_given_makes_three_lines(template: Template) -> None:
    messages = messages_from(template, " Go forward 10 meters.", SEEN, "What now?")
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[1]["content"] == 'Heard: "Go forward 10 meters."\nSeen: 2 person, 1 bus\nQuestion: What now?'


@pytest.mark.parametrize(
    ("transcript", "detections", "question", "lines"),
    [
        ("Yes.", None, "What?", ['Heard: "Yes."', "Question: What?"]),
        (None, SEEN, "What?", ["Seen: 2 person, 1 bus", "Question: What?"]),
        (None, None, "What?", ["Question: What?"]),
        ("", NOTHING_SEEN, "What?", ["Heard: nothing", "Seen: nothing", "Question: What?"]),
        (" \n ", None, "What?", ["Heard: nothing", "Question: What?"]),
        ("one\ntwo\t three", None, "a\nb", ['Heard: "one two three"', "Question: a", "b"]),
    ],
)
def test_what_was_not_given_has_no_line_and_what_was_empty_is_nothing(
    template: Template, transcript: str | None, detections: str | None, question: str, lines: list[str]
) -> None:
    assert user(template, transcript, detections, question).split("\n") == lines


def test_a_question_alone_needs_no_explanation_of_recordings_and_pictures(template: Template) -> None:
    assert messages_from(template, None, None, "Why?") == [{"role": "user", "content": "Question: Why?"}]


@pytest.mark.parametrize("question", [None, "", "  \n"])
@pytest.mark.parametrize(
    ("transcript", "detections", "asked"),
    [("x", SEEN, "What do you hear and see?"), ("", None, "What do you hear?"), (None, SEEN, "What do you see?")],
)
def test_an_empty_question_becomes_the_one_that_fits(
    template: Template, question: str | None, transcript: str | None, detections: str | None, asked: str
) -> None:
    assert user(template, transcript, detections, question).endswith(f"Question: {asked}")


def test_an_empty_question_about_nothing_is_refused(template: Template) -> None:
    with pytest.raises(PromptError, match="^QUESTION: empty"):
        messages_from(template, None, None, " ")


@pytest.mark.parametrize(
    "detections",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"detections": 5}',
        '{"detections": [5]}',
        '{"detections": [{"score": 1}]}',
        '{"detections": [{"label": ""}]}',
        "[" * 100_000,
        "1" * 5000,
        '{"detections": [{"label": "\\ud800"}]}',
    ],
)
def test_detections_of_another_form_are_refused(template: Template, detections: str) -> None:
    with pytest.raises(PromptError, match="^DETECTIONS: ") as caught:
        messages_from(template, None, detections, "What?")
    assert "yolo_postprocess" in str(caught.value)


def test_labels_are_counted_in_the_order_in_which_they_first_appear() -> None:
    labels = ["cup", "dining table", "cup", "person", "cup"]
    detections = json.dumps({"detections": [{"label": label} for label in labels]})
    assert counts_from(detections) == [("cup", 3), ("dining table", 1), ("person", 1)]


@pytest.mark.timing
def test_a_question_of_100_kb_passes_here_and_quickly(template: Template) -> None:
    question = "word " * 20_000
    started = time.monotonic()
    assert len(user(template, "x", SEEN, question)) > 99_000
    assert time.monotonic() - started < 1


def test_what_is_asked_is_text_and_never_run_as_a_template(template: Template) -> None:
    assert user(template, "{{ 7 * 7 }}", None, "{% raw %}").split("\n") == [
        'Heard: "{{ 7 * 7 }}"',
        "Question: {% raw %}",
    ]


def test_bytes_that_are_no_utf8_and_a_wrong_number_of_texts_are_refused_by_name() -> None:
    assert text_from("QUESTION", ["caf\u00e9".encode()]) == "caf\u00e9"
    with pytest.raises(PromptError, match="^QUESTION: byte 3 is 0xe9"):
        text_from("QUESTION", [b"caf\xe9"])
    with pytest.raises(PromptError, match="^QUESTION: 2 texts"):
        text_from("QUESTION", [b"a", b"b"])


def write(folder: Path, text: str) -> Path:
    path = folder / "template.jinja"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_template_of_ones_own_may_hold_answered_examples(tmp_path: Path) -> None:
    shown = "{% block user_1 %}1+1?{% endblock %}{% block assistant_1 %}2{% endblock %}"
    template = load_template(write(tmp_path, shown + "{% block user %}{{ question }}{% endblock %}"))
    messages = messages_from(template, None, None, "2+2?")
    assert messages == [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "2+2?"},
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{% block user %}", "a Jinja template is needed"),
        ("no block", "each block is a message"),
        ("{% block narrator %}x{% endblock %}", "blocks narrator"),
    ],
)
def test_a_broken_template_is_refused_at_load(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(PromptError, match="^template.jinja: ") as caught:
        load_template(write(tmp_path, text))
    assert words in str(caught.value)


@pytest.mark.parametrize("expression", ["{{ qestion }}", "{{ question.__class__.__mro__ }}", "{{ 1 / 0 }}"])
def test_a_template_that_fails_or_reaches_out_is_an_error_of_the_request(tmp_path: Path, expression: str) -> None:
    template = load_template(write(tmp_path, f"{{% block user %}}{expression}{{% endblock %}}"))
    with pytest.raises(PromptError, match="^template.jinja, block user: "):
        messages_from(template, None, None, "x")
