"""Two small networks, made here: one that gains by batching, and one that takes a large tensor.

gemm    row float32 [2048] -> answer float32 [16]: four layers, 67 MB of weights that are read once per batch
frame   frame float32 [3, 1024, 1024], 12.6 MB -> mean float32 [3]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.peers.work.places import CACHE, session

WIDTH, LAYERS, ANSWERS = 2048, 4, 16
FRAME = (3, 1024, 1024)


def gemm_file() -> Path:
    """The file of the first network; written when it is not there."""
    return _written(CACHE / "gemm.onnx", _gemm)


def frame_file() -> Path:
    """The file of the second network; written when it is not there."""
    return _written(CACHE / "frame.onnx", _frame)


class Gemm:
    """The first network."""

    def __init__(self) -> None:
        self._session = session(gemm_file())

    def batch(self, rows: Sequence[np.ndarray]) -> list[list[float]]:
        """The answer for each row."""
        return self._session.run(["answer"], {"row": np.stack(rows)})[0].tolist()


class Frame:
    """The second network."""

    def __init__(self) -> None:
        self._session = session(frame_file())

    def batch(self, frames: Sequence[np.ndarray]) -> list[list[float]]:
        """The mean of each plane of each frame; a run for each: putting frames together would copy them."""
        return [self._session.run(["mean"], {"frame": frame[None]})[0][0].tolist() for frame in frames]


def _written(path: Path, make: object) -> Path:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        onnx.save(make(), fresh)  # type: ignore[operator]
        fresh.rename(path)
    return path


def _gemm() -> onnx.ModelProto:
    numbers = np.random.default_rng(20251)
    nodes, weights, name = [], [], "row"
    for layer in range(LAYERS + 1):
        width = WIDTH if layer < LAYERS else ANSWERS
        matrix = (numbers.standard_normal((WIDTH, width)) / np.sqrt(WIDTH)).astype(np.float32)
        weights.append(numpy_helper.from_array(matrix, f"weights_{layer}"))
        last = layer == LAYERS
        nodes.append(helper.make_node("MatMul", [name, f"weights_{layer}"], ["answer" if last else f"sum_{layer}"]))
        if not last:
            nodes.append(helper.make_node("Tanh", [f"sum_{layer}"], [name := f"layer_{layer}"]))
    return _model("gemm", nodes, weights, ("row", ["rows", WIDTH]), ("answer", ["rows", ANSWERS]))


def _frame() -> onnx.ModelProto:
    nodes = [helper.make_node("ReduceMean", ["frame", "axes"], ["mean"], keepdims=0)]
    axes = [numpy_helper.from_array(np.array([2, 3], np.int64), "axes")]
    return _model("frame", nodes, axes, ("frame", ["rows", *FRAME]), ("mean", ["rows", FRAME[0]]))


def _model(name: str, nodes: list, weights: list, given: tuple[str, list], made: tuple[str, list]) -> onnx.ModelProto:
    ends = [[helper.make_tensor_value_info(one, TensorProto.FLOAT, shape)] for one, shape in (given, made)]
    graph = helper.make_graph(nodes, name, *ends, initializer=weights)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])
