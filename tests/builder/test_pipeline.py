"""Pipelines as people write them: short forms, and what is refused at once."""

from __future__ import annotations

import pytest

from builder import DeclarationError, Input, Model, Pipeline, Step
from builder.tensors import tensor


def test_short_form_of_a_tensor():
    assert tensor("MODE? STRING [1]") == {"name": "MODE", "data_type": "TYPE_STRING", "dims": [1], "optional": True}
    assert tensor("images TYPE_FP32 [3, -1, 640]") == {"name": "images", "data_type": "TYPE_FP32", "dims": [3, -1, 640]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MODE", "tensor 'MODE': this is not a tensor's short form; NAME TYPE [dims] is needed"),
        ("A UNIT8 [1]", "tensor 'A UNIT8 [1]': UNIT8 names no data type; did you mean UINT8?; one of BOOL, "),
        ("A FP32 [a]", "tensor 'A FP32 [a]': [a] is not a list of sizes; whole numbers are needed"),
    ],
)
def test_wrong_short_form_says_what_is_needed(text, message):
    with pytest.raises(DeclarationError) as caught:
        tensor(text)
    assert str(caught.value).startswith(message)


def test_maps_take_words_lists_and_dicts(model):
    one = model("m", ["A FP32 [1]", "B FP32 [1]"], ["C FP32 [1]"])
    maps = ({"A": "x", "B": "B"}, "A=x B", ["A=x", "B"])
    assert len({tuple(Step(model=one, input_map=given, output_map="C").input_map.items()) for given in maps}) == 1


def test_a_key_given_twice_is_refused(model):
    with pytest.raises(DeclarationError, match="step of m, input_map: A is mapped twice"):
        Step(model=model("m", ["A FP32 [1]"], ["B FP32 [1]"]), input_map="A=x A=y", output_map="B")


def test_inputs_take_a_question_mark(model):
    step = Step(model=model("m", ["A? FP32 [1]"], ["B FP32 [1]"]), input_map="A", output_map="B")
    pipeline = Pipeline(name="p", inputs="A? C", outputs=["B"], steps=[step])
    assert pipeline.inputs == (Input(name="A", optional=True), Input(name="C"))


def test_values_cannot_be_changed_after_the_fact(model):
    given = {"max_batch_size": 4}
    one = Model(name="m", config=given)
    given["max_batch_size"] = 8
    assert one.config["max_batch_size"] == 4
    with pytest.raises(TypeError):
        one.config["max_batch_size"] = 8  # type: ignore[index]


def test_a_profile_changes_what_it_names_and_nothing_else():
    one = Model(
        name="m",
        config={"dynamic_batching": {"max_queue_delay_microseconds": 9, "preserve_ordering": True}},
        profiles={"gpu": {"dynamic_batching": {"max_queue_delay_microseconds": 1}}},
    )
    assert one.config_for("gpu")["dynamic_batching"] == {"max_queue_delay_microseconds": 1, "preserve_ordering": True}
    assert one.config_for("cpu")["dynamic_batching"]["max_queue_delay_microseconds"] == 9


def test_parameters_may_be_plain_strings():
    assert Model(name="m", config={"parameters": {"k": "v"}}).config["parameters"]["k"] == {"string_value": "v"}
