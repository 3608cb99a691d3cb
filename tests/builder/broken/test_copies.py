"""The smallest ensembles whose tensors are moved from the GPU to the host, and what is said about each."""

from __future__ import annotations

import pytest

GPU = {"instance_group": [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}]}
CPU = {"instance_group": [{"kind": "KIND_CPU", "count": 1}]}


def _force(value):
    return {"parameters": {"FORCE_CPU_ONLY_INPUT_TENSORS": {"string_value": value}}}


@pytest.fixture
def told_of_two(told_of_configs):
    """What is said of `pre`, which makes a tensor for `post`, a Python model, on a server of NVIDIA's."""

    def ask(pre, post, data_type="TYPE_FP32", **more):
        one = {"data_type": data_type, "dims": [4]}
        ends = {"input": [{"name": "X", **one}], "output": [{"name": "Y", **one}]}
        maps = (("pre", "X", "t"), ("post", "t", "Y"))
        steps = [
            {"model_name": name, "model_version": -1, "input_map": {"X": read}, "output_map": {"Y": made}}
            for name, read, made in maps
        ]
        return told_of_configs(
            {"name": "pre", **ends, **pre},
            {"name": "post", "backend": "python", **ends, **post},
            {"name": "e", "platform": "ensemble", **ends, "ensemble_scheduling": {"step": steps}},
            **{"release": "24.10-py3", "profile": "gpu", **more},
        )

    return ask


ONNX = {"backend": "onnxruntime", **GPU}


@pytest.mark.parametrize("pre", [ONNX, {"backend": "onnxruntime"}, {"backend": "python", **GPU, **_force("no")}])
@pytest.mark.parametrize("post", [GPU, {}, {"instance_group": [{"kind": "KIND_MODEL"}]}])
def test_a_python_model_on_the_gpu_that_does_not_say_where_it_takes_its_inputs(pre, post, told_of_two):
    """PYB-01 a; without instance_group a model has an instance on every GPU."""
    (line,) = told_of_two(pre, post)
    assert line == (
        "TK911 e, step 1 (post): X lies on the GPU and is moved to the host for post, which runs on the GPU, "
        'a post that says where it takes its inputs is needed. Write parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" '
        'value { string_value: "no" } } in post and read tensors by DLPack where is_cpu() is false, or write "yes" if '
        "its code wants them on the host."
    )


@pytest.mark.parametrize("value", ["yes", "no"])
def test_a_python_model_that_says_where_it_takes_its_inputs(value, told_of_two):
    """PYB-01 a: either word is an answer."""
    assert told_of_two(ONNX, {**GPU, **_force(value)}) == []


@pytest.mark.parametrize(
    ("pre", "post", "more"),
    [
        (ONNX, CPU, {}),
        ({"backend": "onnxruntime", **CPU}, GPU, {}),
        ({"backend": "python", **GPU}, {**GPU, **_force("yes")}, {}),
        ({"backend": "onnxruntime"}, {}, {"profile": "cpu"}),
        (ONNX, GPU, {"release": "embedded"}),  # its ONNX backend hands tensors over on the host
        (ONNX, GPU, {"data_type": "TYPE_STRING"}),
    ],
)
def test_what_is_on_the_host_anyway(pre, post, more, told_of_two):
    assert told_of_two(pre, post, **more) == []


@pytest.mark.parametrize(
    ("value", "found"),
    [("Z", "device_outputs names Z, which is no output"), ("Y T", "device_outputs names T, a string"), ("Y", None),
     ("none", None)],
)  # fmt: skip
def test_outputs_that_cannot_be_left_on_a_gpu(value, found, told_of_configs):
    tensor = {"data_type": "TYPE_FP32", "dims": [4]}
    outputs = [{"name": "Y", **tensor}, {"name": "T", "data_type": "TYPE_STRING", "dims": [1]}]
    model = {"name": "m", "backend": "python", "input": [{"name": "X", **tensor}], "output": outputs, **GPU}
    told = told_of_configs(
        {**model, "parameters": {"device_outputs": {"string_value": value}}}, release="24.10-py3", profile="gpu"
    )
    if found is None:
        assert told == []
    else:
        (line,) = told
        assert line == (
            f"TK912 m, parameters.device_outputs: {found}, names of Y are needed, or none. Correct the name, or take "
            "it out."
        )
