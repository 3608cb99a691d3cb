"""The small form of a network's file gives the boxes, scores and classes of the file it was made of."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from yolo_candidates import candidates_in

from weights.yolo.slim import slim, slimmed

CLASSES, ANCHORS, SIDE = 5, 21, 8
SHAPES = {
    "boxes_scores": (4 + CLASSES, ANCHORS),
    "boxes_scores_transposed": (ANCHORS, 4 + CLASSES),
    "boxes_objectness_scores": (ANCHORS, 5 + CLASSES),
    "detections": (ANCHORS, 6),
}


def write_export(folder: Path, layout: str, data_type: str, opset: int) -> None:
    """An export whose network mixes all pixels by random weights; classes come in equal pairs."""
    kind = TensorProto.FLOAT16 if data_type == "TYPE_FP16" else TensorProto.FLOAT
    shape = SHAPES[layout]
    rng = np.random.default_rng(3)
    weights = rng.random((3 * SIDE * SIDE, *shape), np.float32) / 100
    if layout == "boxes_scores":
        weights[:, 5] = weights[:, 6]  # two classes always say the same: the first of them must be chosen
    nodes = [
        helper.make_node("Reshape", ["pixels", "flat"], ["row"]),
        helper.make_node("MatMul", ["row", "weights"], ["mixed"]),
        helper.make_node("Reshape", ["mixed", "shape"], ["answer"]),
    ]
    constants = {
        "flat": np.array([-1, 3 * SIDE * SIDE], np.int64),
        "weights": weights.reshape(len(weights), -1).astype(np.float16 if kind == TensorProto.FLOAT16 else np.float32),
        "shape": np.array([-1, *shape], np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("pixels", kind, ["batch", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("answer", kind, ["batch", *shape])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])
    onnx.save(model, folder / "model.onnx")
    about = {"input": "pixels", "output": "answer", "data_type": data_type, "output_data_type": data_type}
    about |= {"layout": layout, "output_shape": shape, "classes": CLASSES}
    (folder / "yolo.json").write_text(json.dumps(about))


def answer_of(folder: Path, pixels: np.ndarray) -> tuple[np.ndarray, str]:
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    layout = json.loads((folder / "yolo.json").read_text())["layout"]
    return session.run(["answer"], {"pixels": pixels})[0], layout


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("data_type", ["TYPE_FP32", "TYPE_FP16"])
@pytest.mark.parametrize("layout", SHAPES)
def test_the_slim_network_finds_the_same_boxes(tmp_path: Path, layout: str, data_type: str, opset: int) -> None:
    write_export(tmp_path, layout, data_type, opset)
    pixels = np.random.default_rng(4).integers(0, 256, (3, 3, SIDE, SIDE), dtype=np.uint8)
    floats = (pixels.astype(np.float32) / np.float32(255)).astype(
        np.float16 if data_type == "TYPE_FP16" else np.float32
    )
    before, _ = answer_of(tmp_path, floats)
    slim(tmp_path)
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    after, slim_layout = answer_of(tmp_path, pixels)
    assert slim_layout == ("detections" if layout == "detections" else "boxes_best")
    assert after.nbytes < before.nbytes or layout == "detections" or data_type == "TYPE_FP16"
    for full, small in zip(before, after, strict=True):
        wanted = candidates_in(full, layout, CLASSES, 0.2)
        found = candidates_in(small, slim_layout, CLASSES, 0.2)
        assert len(wanted.scores) > 0
        np.testing.assert_array_equal(found.classes, wanted.classes)
        tolerance = 2e-2 if data_type == "TYPE_FP16" else 0
        np.testing.assert_allclose(found.boxes, wanted.boxes, atol=tolerance)
        np.testing.assert_allclose(found.scores, wanted.scores, atol=tolerance)


def test_the_description_says_what_the_slim_network_takes_and_gives(tmp_path: Path) -> None:
    slimmed(lambda out: write_export(out, "boxes_objectness_scores", "TYPE_FP32", 18))(tmp_path)
    about = json.loads((tmp_path / "yolo.json").read_text())
    assert (about["data_type"], about["output_data_type"]) == ("TYPE_UINT8", "TYPE_FP32")
    assert (about["layout"], about["output_shape"]) == ("boxes_best", [6, ANCHORS])
    graph = onnx.load(tmp_path / "model.onnx").graph
    (given,) = graph.output
    assert [dim.dim_param or dim.dim_value for dim in given.type.tensor_type.shape.dim] == ["batch", 6, ANCHORS]
    assert graph.input[0].type.tensor_type.elem_type == TensorProto.UINT8
