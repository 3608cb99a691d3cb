"""Steps that begin together: who of them may refuse before the next has begun."""

from __future__ import annotations

import pytest

from builder import Pipeline, Step


def _step(model, maps, output):
    return Step(model=model, input_map=maps, output_map=output)


@pytest.fixture
def python(model):
    """A Python model of this name, and of these inputs."""
    return lambda name, *inputs: model(name, list(inputs) or ["A FP32 [1]"], ["B FP32 [1]"])


@pytest.fixture
def onnx(model):
    """A network, which looks at nothing but shapes."""
    return lambda name: model(name, ["A FP32 [1]"], ["B FP32 [1]"], backend="onnxruntime")


def test_two_python_steps_that_begin_with_the_request(python, told):
    steps = [_step(python("hear"), "A=X", "B=Y"), _step(python("see"), "A=X", "B=Z")]
    assert told(Pipeline(name="p", inputs="X", outputs="Y Z", steps=steps)) == [
        "TK316 p, step 0 (hear): it begins together with step 1 (see), the embedded server ends with a segmentation "
        "fault if hear refuses a request before see has it. Give see an optional input that it need not read, and map "
        "the last tensor of hear's branch to it, so that they work in turn."
    ]


def test_the_remedy_is_no_finding(python, told):
    see = python("see", "A FP32 [1]", "AFTER? FP32 [1]")
    steps = [_step(python("hear"), "A=X", "B=Y"), _step(see, "A=X AFTER=Y", "B=Z")]
    assert told(Pipeline(name="p", inputs="X", outputs="Y Z", steps=steps)) == []


def test_a_release_that_is_mended(python, told):
    steps = [_step(python("hear"), "A=X", "B=Y"), _step(python("see"), "A=X", "B=Z")]
    pipeline = Pipeline(name="p", inputs="X", outputs="Y Z", steps=steps)
    assert told(pipeline, release="26.07") == []
    assert [line[:5] for line in told(pipeline, release="25.01")] == ["TK316"]


def test_python_before_a_network_has_only_to_stand_behind_it(python, onnx, told, told_of_configs):
    """Which a pipeline's steps do by themselves, however they are declared."""
    hear, net = python("hear"), onnx("net")
    steps = [_step(hear, "A=X", "B=Y"), _step(net, "A=X", "B=Z")]
    assert told(Pipeline(name="p", inputs="X", outputs="Y Z", steps=steps)) == [
        "TK317 p, step 0 (hear): it is at work at the same time as step 1 (net), the embedded server keeps the tensors "
        "of each request that hear refuses meanwhile. Give hear an optional input that it need not read, and map the "
        "last tensor of net's branch to it, so that they work in turn."
    ]
    written = {
        "name": "p",
        "platform": "ensemble",
        "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [1]}],
        "output": [{"name": name, "data_type": "TYPE_FP32", "dims": [1]} for name in "YZ"],
        "ensemble_scheduling": {
            "step": [
                {"model_name": "hear", "model_version": -1, "input_map": {"A": "X"}, "output_map": {"B": "Y"}},
                {"model_name": "net", "model_version": -1, "input_map": {"A": "X"}, "output_map": {"B": "Z"}},
            ]
        },
    }
    models = [{"name": one.name, **one.config_for("cpu")} for one in (hear, net)]
    (line,) = told_of_configs(*models, written)
    assert line.endswith("if hear refuses a request before net has it. Put its step behind that of net.")


def test_steps_that_begin_when_another_ends(python, told):
    steps = [
        _step(python("first"), "A=X", "B=t"),
        _step(python("hear"), "A=t", "B=Y"),
        _step(python("see"), "A=t", "B=Z"),
    ]
    (line,) = told(Pipeline(name="p", inputs="X", outputs="Y Z", steps=steps))
    assert line.startswith("TK316 p, step 1 (hear): it begins together with step 2 (see)")


def test_a_step_that_waits_for_more_begins_later(python, told):
    """`join` reads what `first` makes and what `hear` makes of it: it begins when `hear` ends."""
    join = python("join", "A FP32 [1]", "C FP32 [1]")
    steps = [
        _step(python("first"), "A=X", "B=t"),
        _step(python("hear"), "A=t", "B=u"),
        _step(join, "A=t C=u", "B=Y"),
    ]
    assert told(Pipeline(name="p", inputs="X", outputs="Y", steps=steps)) == []


def test_networks_beside_each_other_refuse_nothing(onnx, told):
    steps = [_step(onnx("net"), "A=X", "B=Y"), _step(onnx("other"), "A=X", "B=Z")]
    assert told(Pipeline(name="p", inputs="X", outputs="Y Z", steps=steps)) == []
