"""The smallest models with a wrong input or output, and what is said about each."""

from __future__ import annotations

GOOD = {"name": "B", "data_type": "TYPE_FP32", "dims": [1]}


def _with(tensor, **config):
    return {"name": "m", "backend": "python", "input": [tensor], "output": [GOOD], **config}


def test_no_name(told_of_configs):
    (line,) = told_of_configs(_with({"data_type": "TYPE_FP32", "dims": [1]}))
    assert line.startswith("TK201 m, input[0]: input 0 has no name")


def test_no_data_type(told_of_configs):
    (line,) = told_of_configs(_with({"name": "A", "dims": [1]}))
    assert line == ("TK202 m, input A: no data type is given, one such as TYPE_FP32 is needed. Write data_type.")


def test_no_dims(told_of_configs):
    (line,) = told_of_configs(_with({"name": "A", "data_type": "TYPE_FP32"}))
    assert line.startswith("TK203 m, input A: no dims are given, sizes of 1 or more are needed, -1 where one varies.")


def test_a_size_of_zero(told_of_configs):
    """DEP-06 c."""
    (line,) = told_of_configs(_with({"name": "A", "data_type": "TYPE_FP32", "dims": [0]}))
    assert line.startswith("TK203 m, input A: dims are [0], ")


def test_one_name_twice(told_of_configs):
    """DEP-06 b."""
    (line,) = told_of_configs({"name": "m", "backend": "python", "input": [GOOD, GOOD], "output": [GOOD]})
    assert line == "TK204 m, input B: B is declared 2 times, each name can be declared once. Keep one of them."


def test_reshape_to_other_elements(told_of_configs):
    tensor = {"name": "A", "data_type": "TYPE_FP32", "dims": [2, -1], "reshape": {"shape": [-1, 3]}}
    (line,) = told_of_configs(_with(tensor))
    assert line.startswith(
        "TK205 m, input A: dims [2,-1] are reshaped to [-1,3], the same number of elements is needed"
    )


def test_empty_reshape_without_a_batch(told_of_configs):
    tensor = {"name": "A", "data_type": "TYPE_FP32", "dims": [1], "reshape": {}}
    (line,) = told_of_configs(_with(tensor))
    assert line.startswith("TK205 m, input A: reshape is to no dimension at all, and the model does not batch")
    assert told_of_configs(_with(tensor, max_batch_size=2, dynamic_batching={"preserve_ordering": True})) == []


def test_a_picture_without_three_dims(told_of_configs):
    tensor = {"name": "A", "data_type": "TYPE_FP32", "dims": [3, 4], "format": "FORMAT_NHWC"}
    (line,) = told_of_configs(_with(tensor))
    assert line.startswith("TK206 m, input A: FORMAT_NHWC with dims [3,4], three dims are needed")


def test_a_shape_tensor_of_a_python_model(told_of_configs):
    tensor = {"name": "A", "data_type": "TYPE_INT32", "dims": [1], "is_shape_tensor": True}
    (line,) = told_of_configs(_with(tensor))
    assert line.startswith("TK207 m, input A: is_shape_tensor on a model that TensorRT does not run")


def test_a_negative_batch(told_of_configs):
    (line,) = told_of_configs(_with({"name": "A", "data_type": "TYPE_FP32", "dims": [1]}, max_batch_size=-1))
    assert line.startswith("TK208 m, max_batch_size: max_batch_size is -1, 0 for a model that does not batch")
