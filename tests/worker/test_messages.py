import json

import pytest

from batch.errors import RowError
from worker.messages import Message, answer, dead_letter, fields_of, trace_of


def message(value: bytes | None, key: bytes | None = b"k", **headers: bytes) -> Message:
    named = tuple((name.replace("_", "-"), one) for name, one in headers.items())
    return Message(topic="in", partition=1, offset=7, key=key, value=value, headers=named)


def test_trace_context_of_a_message_is_text_for_the_call_that_answers_it() -> None:
    assert trace_of(message(b"{}", traceparent=b"00-ab-cd-01", blob=b"\xff"))["traceparent"] == "00-ab-cd-01"


def test_json_object_is_the_fields_and_a_recording_is_itself() -> None:
    assert fields_of(message(b'{"id": 1, "prompt": "a"}')) == {"prompt": "a"}
    assert fields_of(message(b"RIFF", content_type=b"audio/wav")) == {"audio": b"RIFF"}
    assert fields_of(message(b"\xff\xd8", content_type=b"image/jpeg")) == {"image": b"\xff\xd8"}


@pytest.mark.parametrize(
    ("value", "words"), [(None, "tombstone"), (b"{", "no JSON"), (b"\xff", "no JSON"), (b"[]", "list")]
)
def test_message_that_is_no_question_is_refused_with_what_is_needed(value: bytes | None, words: str) -> None:
    with pytest.raises(RowError, match=f"{words}.*fields of the pipeline"):
        fields_of(message(value))


def test_answer_has_the_key_and_the_headers_of_its_message_and_where_it_came_from() -> None:
    sent = answer(message(b"{}", traceparent=b"00-ab-cd-01", tenant=b"x"), "llm", {"text": "é"})
    assert (sent.key, json.loads(sent.value or b"")) == (b"k", {"text": "é"})
    assert list(sent.headers) == [
        ("traceparent", b"00-ab-cd-01"),
        ("tenant", b"x"),
        ("tritonkit-source", b"in/1/7"),
        ("tritonkit-pipeline", b"llm"),
    ]


def test_answer_to_a_message_without_a_key_is_known_by_where_it_came_from() -> None:
    assert answer(message(b"{}", key=None), "llm", {}).key == b"in/1/7"


def test_dead_letter_keeps_the_value_and_says_why_also_when_it_dies_again() -> None:
    first = dead_letter(message(b"\xff{"), "llm", "no JSON")
    assert first.value == b"\xff{" and ("tritonkit-reason", b"no JSON") in first.headers
    again = Message(topic="dead", partition=0, offset=1, key=first.key, value=first.value, headers=tuple(first.headers))
    headers = dead_letter(again, "llm", "still none").headers
    assert [value for name, value in headers if name == "tritonkit-reason"] == [b"still none"]
    assert [value for name, value in headers if name == "tritonkit-source"] == [b"dead/0/1"]
