"""Configurations against ONNX files: what is filled in, what is refused, in the words of Triton's own backend."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("backend_modules")


def tensors(**shapes: tuple[int, ...]) -> dict[str, Any]:
    """Float tensors of a file."""
    from ort_tensors import FileTensor

    return {name: FileTensor(name=name, data_type="TYPE_FP32", shape=shape) for name, shape in shapes.items()}


def config(**changes: Any) -> dict[str, Any]:
    """The configuration of a model with one input and one output."""
    entry = {"data_type": "TYPE_FP32", "dims": [4]}
    return {
        "name": "m",
        "max_batch_size": 8,
        "input": [{"name": "X", **entry}],
        "output": [{"name": "Y", **entry}],
    } | changes


def check(given: dict[str, Any], x: tuple[int, ...] = (-1, 4), y: tuple[int, ...] = (-1, 4), **more: Any) -> None:
    import ort_config

    ort_config.check(given, tensors(X=x, **more), tensors(Y=y), {})


def entry(name: str = "X", **changes: Any) -> dict[str, Any]:
    return {"name": name, "data_type": "TYPE_FP32", "dims": [4], **changes}


def test_a_file_with_a_free_first_dimension_batches() -> None:
    import ort_config

    completed = ort_config.complete(
        {"name": "m", "max_batch_size": 0, "input": [], "output": []},
        tensors(X=(-1, 3, -1)),
        tensors(Y=(-1,)),
    )
    assert completed["max_batch_size"] == 4
    assert completed["dynamic_batching"] == {}
    assert completed["input"] == [{"name": "X", "data_type": "TYPE_FP32", "dims": [3, -1]}]
    assert completed["output"] == [{"name": "Y", "data_type": "TYPE_FP32", "dims": [1], "reshape": {"shape": []}}]


def test_a_batch_size_and_a_scheduler_that_are_given_are_kept() -> None:
    import ort_config

    given = {"name": "m", "max_batch_size": 16, "input": [], "output": [], "sequence_batching": {}}
    completed = ort_config.complete(given, tensors(X=(-1, 3)), tensors(Y=(-1, 3)))
    assert completed["max_batch_size"] == 16
    assert "dynamic_batching" not in completed


def test_a_file_with_a_fixed_first_dimension_does_not_batch() -> None:
    import ort_config

    given = {"name": "m", "max_batch_size": 0, "input": [], "output": []}
    completed = ort_config.complete(given, tensors(X=(2, 3)), tensors(Y=()))
    assert completed["max_batch_size"] == 0
    assert completed["input"][0]["dims"] == [2, 3]
    assert completed["output"][0]["dims"] == [1]
    with pytest.raises(ValueError, match="model does not support batching while non-zero max_batch_size is specified"):
        ort_config.complete(given | {"max_batch_size": 8}, tensors(X=(2, 3)), tensors(Y=()))


def test_nothing_is_filled_in_when_inputs_and_outputs_are_given() -> None:
    import ort_config

    assert ort_config.is_complete(config())
    assert not ort_config.is_complete(config(output=[]))


@pytest.mark.parametrize(
    "given",
    [
        config(),
        config(input=[entry(dims=[2, 2], reshape={"shape": [4]})]),
        config(max_batch_size=0, input=[entry(dims=[-1, 4])], output=[entry("Y", dims=[-1, 4])]),
        config(max_batch_size=0, input=[entry(dims=[3, 4])], output=[entry("Y", dims=[-1, 4])]),
    ],
)
def test_what_fits_is_taken(given: dict[str, Any]) -> None:
    check(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (config(input=[entry("Z")]), "unexpected inference input 'Z', allowed inputs are: X"),
        (config(output=[entry("Z")]), "unexpected inference output 'Z', allowed outputs are: Y"),
        (config(input=[entry(), entry("Z")]), "configuration expects 2 inputs, model provides 1"),
        (
            config(input=[entry(data_type="TYPE_FP16")]),
            "configuration expects datatype TYPE_FP16 for input 'X', model provides TYPE_FP32",
        ),
        (config(input=[entry(dims=[5])]), r"expects 2 dimensions \(shape \[-1,4\]\) .* specifies 2 dim.*\[-1,5\]"),
        (config(input=[entry(dims=[4, 1])]), r"expects 2 dimensions .* specifies 3 dimensions \(shape \[-1,4,1\]"),
        (config(output=[entry("Y", dims=[-1])]), r"tensor 'Y': the model expects 2 .*\(shape \[-1,-1\]"),
        (config(batch_input=[{}]), "`batch_input` needs Triton's own onnxruntime backend"),
        (config(sequence_batching={"state": [{}]}), "implicit state needs Triton's own onnxruntime backend"),
        (config(input=[entry(data_type="TYPE_BF16")]), "TYPE_BF16, which Python models of Triton 2.51 cannot read"),
        (
            config(optimization={"execution_accelerators": {"cpu_execution_accelerator": [{"name": "openvino"}]}}),
            "unknown Execution Accelerator 'openvino' is requested",
        ),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(given)


def test_a_fixed_batch_in_the_file_is_refused_when_batching() -> None:
    with pytest.raises(ValueError, match="the first dimension must be -1; but shape expected by the model is"):
        check(config(), x=(1, 4))


def test_an_optional_input_is_refused_when_batching() -> None:
    given = config(input=[entry(), entry("Z", optional=True)])
    with pytest.raises(ValueError, match="optional input 'Z' is not supported for models that support batching"):
        check(given)


def test_sequence_controls_count_as_inputs() -> None:
    check(config(sequence_batching={"control_input": [{"name": "START"}]}), START=(-1, 1))
