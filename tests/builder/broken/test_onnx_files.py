"""The smallest ONNX files that are not as their config says, and what is said about each."""

from __future__ import annotations

import time

import pytest
from onnx import TensorProto, helper

from builder.folder.onnxfile import read_onnx

TYPES = {"FP32": TensorProto.FLOAT, "FP16": TensorProto.FLOAT16, "INT64": TensorProto.INT64}


def onnx_file(inputs, outputs, *, ir_version: int = 10, opset: int = 18) -> bytes:
    """An ONNX file whose only content are its tensors: name, type, dims (None: a size that varies)."""
    tensors = [
        [helper.make_tensor_value_info(name, TYPES[kind], dims) for name, kind, dims in side]
        for side in (inputs, outputs)
    ]
    node = helper.make_node("Identity", [inputs[0][0]], [outputs[0][0]])
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1000], [0.0] * 1000)
    graph = helper.make_graph([node], "g", *tensors, initializer=[weight])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version
    ).SerializeToString()


def config(inputs: str, outputs: str, batch: int = 0) -> str:
    """A config of these tensors, given as `name TYPE dims`."""
    sides = []
    for side, text in (("input", inputs), ("output", outputs)):
        name, kind, dims = text.split()
        sides.append(f'{side} [ {{ name: "{name}" data_type: TYPE_{kind} dims: {dims} }} ]')
    batching = f"max_batch_size: {batch} dynamic_batching {{ preserve_ordering: true }}" if batch else ""
    return "\n".join(['backend: "onnxruntime"', *sides, batching])


@pytest.fixture
def told_of_onnx(told_of_folder):
    """What is said of a config and a file."""

    def ask(text: str, content: bytes, release: str = "embedded") -> list[str]:
        return told_of_folder({"m/config.pbtxt": text, "m/1/model.onnx": content}, release=release)

    return ask


BATCHED = onnx_file([("x", "FP32", [None, 3, 4])], [("y", "FP32", [None, 3, 4])])


def test_a_file_as_its_config_says(told_of_onnx):
    assert told_of_onnx(config("x FP32 [3,4]", "y FP32 [3,4]", 8), BATCHED) == []
    assert told_of_onnx(config("x FP32 [-1,3,4]", "y FP32 [-1,3,4]"), BATCHED) == []
    assert told_of_onnx('backend: "onnxruntime"', BATCHED) == []


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", BATCHED[:40]])
def test_a_file_that_is_no_onnx(content, told_of_onnx):
    (line,) = told_of_onnx(config("x FP32 [3,4]", "y FP32 [3,4]", 8), content)
    assert line.startswith("TK851 m/1/model.onnx:None m: ")


def test_an_output_that_the_file_does_not_have(told_of_onnx):
    """ENS-06 c."""
    file = onnx_file([("x", "FP32", [3])], [("307", "FP32", [3])])
    (line,) = told_of_onnx(config("x FP32 [3]", "308 FP32 [3]"), file)
    assert line.startswith(
        "TK852 m/config.pbtxt:3 m, output 308: the file has no output 308; did you mean 307?, one of 307 is needed."
    )


def test_an_input_that_the_config_leaves_out(told_of_onnx):
    file = onnx_file([("x", "FP32", [3]), ("mask", "INT64", [None])], [("y", "FP32", [3])])
    (line,) = told_of_onnx(config("x FP32 [3]", "y FP32 [3]"), file)
    assert line.startswith("TK853 m/config.pbtxt:2 m, input mask: the config has no input mask, and the file needs it")
    assert line.endswith('Add { name: "mask" data_type: TYPE_INT64 dims: [-1] }.')


@pytest.mark.parametrize(("in_file", "in_config"), [("FP32", "FP16"), ("FP16", "FP32")])
def test_another_type_than_the_files(in_file, in_config, told_of_onnx):
    """YOL-04, WHI-05."""
    file = onnx_file([("x", in_file, [3])], [("y", in_file, [3])])
    (line,) = told_of_onnx(config(f"x {in_config} [3]", f"y {in_file} [3]"), file)
    assert line.startswith(f"TK854 m/config.pbtxt:2 m, input x: file: TYPE_{in_file}, config: TYPE_{in_config}, ")
    assert line.endswith(f"Write data_type: TYPE_{in_file}, or export the file with TYPE_{in_config} at this input.")


def test_the_batch_written_in_dims(told_of_onnx):
    """BAT-05."""
    file = onnx_file([("images", "FP32", [None, 3, 512, 864])], [("y", "FP32", [None, 2])])
    (line,) = told_of_onnx(config("images FP32 [-1,3,512,864]", "y FP32 [2]", 16), file)
    assert line.startswith(
        "TK855 m/config.pbtxt:2 m, input images: the file has 4 dimensions [-1,3,512,864], the config 5 "
        "[-1,-1,3,512,864], the batch in front included, dims: [3,512,864] is needed. Write dims: [3,512,864]"
    )


def test_batching_of_a_file_with_a_fixed_batch(told_of_onnx):
    file = onnx_file([("x", "FP32", [1, 3])], [("y", "FP32", [1, 3])])
    lines = told_of_onnx(config("x FP32 [3]", "y FP32 [3]", 8), file)
    assert [line.split(": ")[0] for line in lines] == [
        "TK856 m/config.pbtxt:2 m, input x",
        "TK856 m/config.pbtxt:3 m, output y",
    ]


@pytest.mark.parametrize(("ir_version", "opset", "word"), [(13, 18, "ir_version 13"), (10, 23, "opset 23")])
def test_a_file_that_is_newer_than_the_runtime(ir_version, opset, word, told_of_onnx):
    file = onnx_file([("x", "FP32", [3])], [("y", "FP32", [3])], ir_version=ir_version, opset=opset)
    (line,) = told_of_onnx(config("x FP32 [3]", "y FP32 [3]"), file, release="24.10-py3")
    assert line.startswith(f"TK857 m/1/model.onnx:None m: {word}, ONNX Runtime 1.19.2 of 24.10 reads at most ")


def test_a_model_of_sixteen_rows(told_of_onnx):
    """YOL-03."""
    file = onnx_file([("images", "FP32", [16, 3, 640, 640])], [("y", "FP32", [16, 300, 6])])
    (line,) = told_of_onnx(config("images FP32 [16,3,640,640]", "y FP32 [16,300,6]"), file)
    assert line.startswith(
        "TK858 m/config.pbtxt:2 m, input[0].dims: every tensor has the first size 16, every request "
    )


@pytest.mark.timing
def test_a_large_file_is_not_read_whole(tmp_path):
    file = tmp_path / "model.onnx"
    size = 2**34  # of a field that nobody asks for, in a file with a hole: nothing of it is on the disk
    length = bytes((size >> shift & 0x7F) | (0x80 if size >> shift + 7 else 0) for shift in range(0, 35, 7))
    with file.open("wb") as out:
        out.write(BATCHED + b"\x32" + length)
        out.truncate(out.tell() + size)
    began = time.monotonic()
    assert [one.name for one in read_onnx(file).inputs] == ["x"]
    assert time.monotonic() - began < 1


PLAN = 'backend: "tensorrt"\n' + config("x FP32 [3]", "y FP32 [3]").partition("\n")[2]


def test_a_plan_of_another_release(told_of_folder):
    """YOL-07."""
    files = {"m/config.pbtxt": PLAN, "m/1/model.plan": "", "m/1/plan.json": '{"container": "24.03"}'}
    (line,) = told_of_folder(files, release="24.10-py3", profile="gpu")
    assert line.startswith(
        "TK861 m/1/model.plan:None m: the plan was built with 24.03, one built with 24.10 is needed."
    )
    assert told_of_folder(files, release="24.03-py3", profile="gpu") == []


def test_a_plan_of_unknown_origin(told_of_folder):
    """YOL-07."""
    (line,) = told_of_folder({"m/config.pbtxt": PLAN, "m/1/model.plan": ""}, release="24.10-py3", profile="gpu")
    assert line.startswith("TK862 m/1/model.plan:None m: there is no plan.json beside the plan")
