"""A network's file with small tensors at both ends: whole numbers in, one score and one class for each place out.

In: an export folder. Out: the same folder, `model.onnx` and `yolo.json` rewritten.

Pixels are 0 to 255 before they are floats, and the steps behind the network look at the best class of a place alone.
Both conversions move into the graph, where they cost nothing that could be measured; a picture then crosses into the
network in a quarter of the bytes, and its answer comes back in a fourteenth (80 classes). No box, score or class
changes: the division is the same one, and the best class is chosen by the same rule (the first of equals).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Layout of the network's own answer -> rows of it: where the boxes are, the objectness, the classes begin.
_COLUMNS = {"boxes_scores": (None, 4), "boxes_scores_transposed": (None, 4), "boxes_objectness_scores": (4, 5)}
_DTYPES = {"TYPE_FP32": np.float32, "TYPE_FP16": np.float16}


def slimmed(fill: Callable[[Path], None]) -> Callable[[Path], None]:
    """An exporter that leaves the slim form of what another one writes."""

    def fill_and_slim(out: Path) -> None:
        fill(out)
        slim(out)

    return fill_and_slim


def slim(folder: Path) -> None:
    """Rewrite the network of an export folder; where NMS is done inside, the answer stays as it is."""
    described = json.loads((folder / "yolo.json").read_text(encoding="utf-8"))
    model = onnx.load(folder / "model.onnx")
    _take_whole_numbers(model.graph, described["input"], described["data_type"])
    described["data_type"] = "TYPE_UINT8"
    if described["layout"] in _COLUMNS:
        rows, anchors = described["output_shape"]
        anchors = rows if described["layout"] != "boxes_scores" else anchors
        _give_best_class(model, described["output"], described["layout"], anchors)
        described |= {"layout": "boxes_best", "output_shape": [6, anchors], "output_data_type": "TYPE_FP32"}
    onnx.save_model(model, folder / "model.onnx")
    (folder / "yolo.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def _take_whole_numbers(graph: onnx.GraphProto, name: str, data_type: str) -> None:
    """The input becomes uint8; floats from 0 to 1 are made of it before anything reads it."""
    inside = f"{name}_0_to_1"
    for node in graph.node:
        node.input[:] = [inside if each == name else each for each in node.input]
    entry = next(value for value in graph.input if value.name == name)
    kind = entry.type.tensor_type.elem_type
    entry.type.tensor_type.elem_type = TensorProto.UINT8
    graph.initializer.append(numpy_helper.from_array(np.array(255, _DTYPES[data_type]), f"{name}_255"))
    graph.node.insert(0, helper.make_node("Div", [f"{name}_floats", f"{name}_255"], [inside]))
    graph.node.insert(0, helper.make_node("Cast", [name], [f"{name}_floats"], to=kind))


def _give_best_class(model: onnx.ModelProto, name: str, layout: str, anchors: int) -> None:
    """The output becomes float32 [batch, 6, anchors]: cx cy w h, the best score, its class."""
    graph, inside = model.graph, f"{name}_all"
    for node in graph.node:
        node.output[:] = [inside if each == name else each for each in node.output]
        node.input[:] = [inside if each == name else each for each in node.input]
    entry = next(value for value in graph.output if value.name == name)
    batch = entry.type.tensor_type.shape.dim[0]
    new = helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 6, anchors])
    new.type.tensor_type.shape.dim[0].CopyFrom(batch)
    entry.CopyFrom(new)
    objectness, classes = _COLUMNS[layout]
    nodes = [helper.make_node("Cast", [inside], [f"{name}_float"], to=TensorProto.FLOAT)]
    rows = f"{name}_float"
    if layout != "boxes_scores":
        nodes.append(helper.make_node("Transpose", [rows], [f"{name}_rows"], perm=[0, 2, 1]))
        rows = f"{name}_rows"
    nodes += _part(graph, rows, f"{name}_boxes", 0, 4)
    nodes += _part(graph, rows, f"{name}_classes", classes, np.iinfo(np.int64).max)
    scores = f"{name}_classes"
    if objectness is not None:
        nodes += _part(graph, rows, f"{name}_objectness", objectness, objectness + 1)
        nodes.append(helper.make_node("Mul", [scores, f"{name}_objectness"], [f"{name}_scores"]))
        scores = f"{name}_scores"
    nodes += [
        _largest(model, scores, f"{name}_best"),
        helper.make_node("ArgMax", [scores], [f"{name}_number"], axis=1, keepdims=1),
        helper.make_node("Cast", [f"{name}_number"], [f"{name}_class"], to=TensorProto.FLOAT),
        helper.make_node("Concat", [f"{name}_boxes", f"{name}_best", f"{name}_class"], [name], axis=1),
    ]
    graph.node.extend(nodes)


def _part(graph: onnx.GraphProto, source: str, target: str, first: int, end: int) -> list[onnx.NodeProto]:
    """Rows `first` to `end` of a tensor [batch, rows, anchors]."""
    names = []
    for word, value in (("first", first), ("end", end), ("axis", 1)):
        names.append(f"{target}_{word}")
        graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), names[-1]))
    return [helper.make_node("Slice", [source, *names], [target])]


def _largest(model: onnx.ModelProto, source: str, target: str) -> onnx.NodeProto:
    """The largest along axis 1; since opset 18 the axis is an input."""
    opset = max(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    if opset < 18:
        return helper.make_node("ReduceMax", [source], [target], axes=[1], keepdims=1)
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), f"{target}_axis"))
    return helper.make_node("ReduceMax", [source, f"{target}_axis"], [target], keepdims=1)
