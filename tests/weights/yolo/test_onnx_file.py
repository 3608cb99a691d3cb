"""Any ONNX file as it is: what it takes, what it gives, what is refused."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from weights.errors import ExportError
from weights.yolo.onnx_file import export_onnx_file

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def network(
    path: Path,
    rows: tuple[int, ...] = (7, 21),
    dims: tuple = ("batch", 3, 32, 32),
    kind: int = FLOAT,
    metadata: dict[str, str] | None = None,
    outputs: int = 1,
    axes: tuple[int, ...] = (1, 2, 3),
    fills_first_only: bool = False,
) -> Path:
    """A network whose output per picture has the shape `rows`: the picture's mean times constants."""
    dtype = np.float16 if kind == HALF else np.float32
    constants = {
        "axes": np.array(axes, np.int64),
        "flat": np.array([-1] + [1] * len(rows), np.int64),
        "table": np.ones((1, *rows), dtype),
        **({"first": np.array(0, np.int64), "half": np.array(1.5, dtype)} if fills_first_only else {}),
    }
    # the number of each row from 1 on, and 1 for the first, 0 for the others
    mask = [
        helper.make_node("Div", ["mean", "mean"], ["ones"]),
        helper.make_node("CumSum", ["ones", "first"], ["number"]),
        helper.make_node("Less", ["number", "half"], ["is_first"]),
        helper.make_node("Cast", ["is_first"], ["mask"], to=kind),
        helper.make_node("Mul", ["mean", "mask"], ["kept"]),
    ]
    nodes = [
        helper.make_node("ReduceMean", ["images", "axes"], ["mean"], keepdims=1),
        *(mask if fills_first_only else []),
        helper.make_node("Reshape", ["kept" if fills_first_only else "mean", "flat"], ["one"]),
        *(helper.make_node("Mul", ["one", "table"], [f"output{n}"]) for n in range(outputs)),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("images", kind, dims)],
        [helper.make_tensor_value_info(f"output{n}", kind, [None] * (1 + len(rows))) for n in range(outputs)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])
    helper.set_model_props(model, metadata or {})
    onnx.save(model, path)
    return path


NAMES = {"names": "{0: 'cat', 1: 'big dog', 2: 'person\\n'}"}


def exported(source: Path, tmp_path: Path, **options: object) -> dict:
    out = tmp_path / "out"
    out.mkdir()
    export_onnx_file(source, out, **options)
    return json.loads((out / "yolo.json").read_text())


def test_a_file_is_copied_as_it_is_and_described(tmp_path: Path) -> None:
    source = network(tmp_path / "own.onnx", metadata=NAMES)
    assert exported(source, tmp_path) == {
        "source": "own.onnx",
        "input": "images",
        "output": "output0",
        "data_type": "TYPE_FP32",
        "output_data_type": "TYPE_FP32",
        "height": 32,
        "width": 32,
        "batch": None,
        "output_shape": [7, 21],
        "layout": "boxes_scores",
        "classes": 3,
    }
    assert (tmp_path / "out" / "model.onnx").read_bytes() == source.read_bytes()
    assert (tmp_path / "out" / "labels.txt").read_text() == "cat\nbig dog\nperson\n"


@pytest.mark.parametrize(
    ("rows", "layout"),
    [
        ((7, 21), "boxes_scores"),
        ((21, 7), "boxes_scores_transposed"),
        ((63, 8), "boxes_objectness_scores"),
        ((300, 6), "detections"),
    ],
)
def test_the_layout_is_seen_in_a_run(rows: tuple, layout: str, tmp_path: Path) -> None:
    about = exported(network(tmp_path / "own.onnx", rows, metadata=NAMES), tmp_path)
    assert (about["layout"], about["classes"], about["output_shape"]) == (layout, 3, list(rows))


def test_half_precision_is_told_from_the_files_own_input_and_output(tmp_path: Path) -> None:
    about = exported(network(tmp_path / "half.onnx", kind=HALF), tmp_path)
    assert (about["data_type"], about["output_data_type"]) == ("TYPE_FP16", "TYPE_FP16")


@pytest.mark.parametrize("batch", [1, 16])
def test_a_fixed_batch_is_noted(batch: int, tmp_path: Path) -> None:
    assert exported(network(tmp_path / "own.onnx", dims=(batch, 3, 32, 32)), tmp_path)["batch"] == batch


def test_free_sides_are_taken_from_the_metadata_or_from_the_caller(tmp_path: Path) -> None:
    free = ("batch", 3, "height", "width")
    about = exported(network(tmp_path / "own.onnx", dims=free, metadata={"imgsz": "[64, 96]"}), tmp_path)
    assert (about["height"], about["width"]) == (64, 96)
    out = tmp_path / "given"
    out.mkdir()
    export_onnx_file(network(tmp_path / "own.onnx", dims=free), out, image_size=(32, 64))
    assert json.loads((out / "yolo.json").read_text())["width"] == 64


def test_class_names_are_the_callers_then_the_files_then_numbers(tmp_path: Path) -> None:
    for number, (metadata, labels, wanted) in enumerate(
        [
            (NAMES, ["a", "b", "c"], "a\nb\nc\n"),
            ({"names": "['x', 'y', 'z']"}, None, "x\ny\nz\n"),
            ({}, None, "class0\nclass1\nclass2\n"),
        ]
    ):
        out = tmp_path / str(number)
        out.mkdir()
        export_onnx_file(network(tmp_path / "own.onnx", metadata=metadata), out, labels=labels)
        assert (out / "labels.txt").read_text() == wanted


def test_weights_beside_the_file_are_taken_in(tmp_path: Path) -> None:
    source = network(tmp_path / "own.onnx", rows=(7, 2000))
    onnx.save_model(onnx.load(source), source, save_as_external_data=True, location="own.data", size_threshold=1000)
    exported(source, tmp_path)
    (tmp_path / "own.data").unlink()
    assert onnx.load(tmp_path / "out" / "model.onnx").graph.initializer


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metadata": {"task": "segment"}}, "own.onnx: a network for the task 'segment'. Only detection is served; "),
        ({"metadata": {"names": "oops("}}, "own.onnx: its class names cannot be read (oops(). "),
        ({"metadata": {"names": "{1: 'a', 2: 'b'}"}}, "own.onnx: its class names cannot be read ({1: 'a'"),
        ({"dims": ("batch", 32, 32, 3)}, "own.onnx: inputs {'images': [None, 32, 32, 3]}. One input [batch, 3, "),
        ({"dims": ("batch", 3, 32)}, "own.onnx: inputs {'images': [None, 3, 32]}. One input [batch, 3, "),
        ({"kind": TensorProto.DOUBLE}, "own.onnx: input images is DOUBLE. FLOAT or FLOAT16 is expected. "),
        ({"dims": ("batch", 3, "h", "w")}, "own.onnx: its input's height and width are free and it does not say"),
        ({"outputs": 2}, "own.onnx: outputs {'output0': [1, 7, 21], 'output1': [1, 7, 21]}. Exactly one of three "),
        ({"rows": (7,)}, "own.onnx: outputs {'output0': [1, 7]}. Exactly one of three dimensions"),
        ({"rows": (39, 21), "metadata": NAMES}, "own.onnx: output of shape [39, 21] per picture, 3 class names: "),
        ({"axes": (0, 1, 2, 3)}, "own.onnx: its batch is free, but two pictures give 1 answers. "),
        # YOL-09
        ({"fills_first_only": True}, "own.onnx: of two pictures only the first is answered, though the second "),
    ],
)
def test_what_cannot_be_served_is_refused(options: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError) as refused:
        exported(network(tmp_path / "own.onnx", **options), tmp_path)
    assert str(refused.value).startswith(message)


def test_a_size_that_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="its input is fixed to 32 x 32, 64 x 64 was asked for"):
        exported(network(tmp_path / "own.onnx"), tmp_path, image_size=(64, 64))


@pytest.mark.parametrize("content", [b"", b"no onnx file at all", None])
def test_what_is_no_onnx_file_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "own.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ExportError, match="own.onnx: "):
        exported(path, tmp_path)
