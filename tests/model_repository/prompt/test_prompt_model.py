"""The prompt step as Triton runs it: tensors in, MESSAGES out, errors as responses."""

import json
from pathlib import Path

import numpy as np
import pytest

from tritonkit.testing import ModelError, load_model

PROMPT = Path(__file__).parents[3] / "model_repository" / "prompt"
SEEN = '{"width": 1, "height": 1, "detections": [{"label": "bus", "score": 0.5, "box": [0, 0, 1, 1]}]}'


def texts(**values: str | bytes) -> dict[str, np.ndarray]:
    return {
        name: np.array([value.encode() if isinstance(value, str) else value], dtype=np.object_)
        for name, value in values.items()
    }


def test_messages_are_json() -> None:
    with load_model(PROMPT) as model:
        answer = model.infer(texts(TRANSCRIPT="H\u00e9llo.", DETECTIONS=SEEN, QUESTION="What?"))
    (text,) = answer["MESSAGES"]
    *_, user = json.loads(text)
    assert user == {"role": "user", "content": 'Heard: "H\u00e9llo."\nSeen: 1 bus\nQuestion: What?'}


def test_what_the_pruned_pipelines_leave_out_is_not_told() -> None:
    with load_model(PROMPT) as model:
        (text,) = model.infer(texts(QUESTION="Why?"))["MESSAGES"]
    assert json.loads(text) == [{"role": "user", "content": "Question: Why?"}]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"QUESTION": b"caf\xe9"}, "QUESTION: byte 3"),
        ({"QUESTION": "x", "TRANSCRIPT": b"\xff"}, "TRANSCRIPT: byte 0"),
        ({"QUESTION": "x", "DETECTIONS": "{"}, "DETECTIONS: no JSON"),
        ({"QUESTION": " "}, "QUESTION: empty"),
        ({}, "QUESTION: empty"),
    ],
)
def test_a_wrong_input_is_an_error_and_the_next_request_works(values: dict[str, str | bytes], words: str) -> None:
    with load_model(PROMPT) as model:
        with pytest.raises(ModelError, match=words):
            model.infer(texts(**values))
        assert model.infer(texts(QUESTION="x"))["MESSAGES"].shape == (1,)


def test_requests_of_one_batch_do_not_mix() -> None:
    with load_model(PROMPT) as model:
        answers = model.execute([texts(QUESTION="a"), texts(QUESTION=b"\xff"), texts(QUESTION="b")])
    assert "Question: a" in str(answers[0]) and "Question: b" in str(answers[2])
