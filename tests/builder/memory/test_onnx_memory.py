"""Estimates of ONNX models against the memory that a real session takes, and small graphs worked out by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from builder.backends.onnx import load_graph
from builder.memory.onnx_memory import onnx_memory

HERE = Path(__file__).parent
FLOAT = TensorProto.FLOAT


def _saved(path, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
    return path


def _measured(path: Path, shapes: dict[str, list[int]]) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, str(HERE / "real_onnx.py"), str(path), json.dumps(shapes)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def _perceptron(path):
    """Three wide layers: weights count."""
    rng = np.random.default_rng(1)
    nodes, weights, before = [], [], "x"
    for index in range(3):
        weights.append((f"w{index}", rng.random((1536, 1536), np.float32)))
        nodes += [
            helper.make_node("MatMul", [before, f"w{index}"], [f"h{index}"]),
            helper.make_node("Relu", [f"h{index}"], [f"r{index}"]),
        ]
        before = f"r{index}"
    return _saved(path, nodes, {"x": ["batch", 1536]}, {before: ["batch", 1536]}, weights)


def _residual(path):
    """Convolutions around which the input goes: three maps alive at once."""
    rng = np.random.default_rng(2)
    weights = [(f"w{index}", rng.random((16, 16, 3, 3), np.float32)) for index in range(2)]
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Conv", ["s", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "s"], ["y"]),
    ]
    return _saved(path, nodes, {"x": ["batch", 16, 256, 256]}, {"y": ["batch", 16, 256, 256]}, weights)


def test_an_element_wise_chain_needs_one_tensor(tmp_path):
    nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    memory = onnx_memory(_saved(tmp_path / "m.onnx", nodes, {"x": ["n", 10]}, {"y": ["n", 10]}), batch=4)
    assert (memory.inputs, memory.activations, memory.outputs, memory.weights) == (160, 160, 160, 0)


def test_a_tensor_that_is_read_again_stays_and_two_tensors_make_a_third(tmp_path):
    nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"]),
             helper.make_node("Add", ["a", "b"], ["y"])]  # fmt: skip
    assert onnx_memory(_saved(tmp_path / "m.onnx", nodes, {"x": [25]}, {"y": [25]})).activations == 300


def test_sizes_come_by_name_and_what_nobody_named_is_told(tmp_path):
    nodes = [helper.make_node("Exp", ["x"], ["y"])]
    path = _saved(tmp_path / "m.onnx", nodes, {"x": ["batch", "past", "new"]}, {"y": ["batch", "past", "new"]})
    memory = onnx_memory(path, {"past": 448}, batch=2)
    assert (memory.activations, memory.assumed) == (2 * 448 * 4, ("new",))


def test_sizes_that_are_computed_from_sizes_are_known(tmp_path):
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1, end=2),
        helper.make_node("Concat", ["four", "s"], ["d"], axis=0),
        helper.make_node("Expand", ["one", "d"], ["y"]),
    ]
    weights = [("four", np.array([4], np.int64)), ("one", np.ones((1, 1), np.float32))]
    memory = onnx_memory(_saved(tmp_path / "m.onnx", nodes, {"x": [1, "k"]}, {"y": ["a", "b"]}, weights), {"k": 100})
    assert (memory.outputs, memory.unknown) == (4 * 100 * 4, 0)


def test_what_depends_on_constants_alone_is_kept_instead_of_its_source(tmp_path):
    weights = [("w", np.zeros((8, 1000), np.float32))]
    nodes = [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    memory = onnx_memory(_saved(tmp_path / "m.onnx", nodes, {"x": [1, 1000]}, {"y": [1, 8]}, weights))
    assert (memory.weights, memory.activations) == (32000, 32)


def _twice(batch):
    """Two products of one input, each with a bias and split; small answers."""
    nodes = []
    for index in range(2):
        nodes += [
            helper.make_node("MatMul", ["x", "w"], [f"m{index}"]),
            helper.make_node("Add", [f"m{index}", "b"], [f"a{index}"]),
            helper.make_node("Split", [f"a{index}"], [f"s{index}", f"t{index}"], num_outputs=2, axis=-1),
            helper.make_node("ReduceMax", [f"s{index}"], [f"y{index}"], keepdims=1),
            helper.make_node("ReduceMax", [f"t{index}"], [f"z{index}"], keepdims=1),
        ]
    weights = [("w", np.ones((384, 768), np.float32)), ("b", np.ones(768, np.float32))]
    outputs = {f"{name}{index}": [1, 1, 1] for index in range(2) for name in "yz"}
    return nodes, {"x": [batch, 1500, 384]}, outputs, weights


@pytest.mark.parametrize(("batch", "tensors"), [(8, 2), ("batch", 3)])
def test_a_bias_needs_memory_of_its_own_where_an_axis_varies_and_free_memory_waits_for_its_shape(
    tmp_path, batch, tensors
):
    """As real sessions take it, measured with `real_onnx.py`: 70.3 MiB and 105.5 MiB."""
    memory = onnx_memory(_saved(tmp_path / "m.onnx", *_twice(batch)), batch=8)
    assert memory.activations == pytest.approx(tensors * 8 * 1500 * 768 * 4, rel=0.001)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "shape", "batch"), [(_perceptron, [2048, 1536], 2048), (_residual, [8, 16, 256, 256], 8)]
)
def test_made_networks_take_what_is_estimated(tmp_path, make, shape, batch):
    path = make(tmp_path / "m.onnx")
    real, memory = _measured(path, {"x": shape}), onnx_memory(path, batch=batch)
    assert memory.activations == pytest.approx(real["activations"], rel=0.15)
    assert memory.weights == pytest.approx(real["weights"], rel=0.15, abs=1 << 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "name", "dims", "batch"),
    [("yolo", "images", [3, 416, 416], 8), ("whisper_encoder", "mel", [80, 3000], 2)],
)
def test_the_shipped_networks_take_what_is_estimated(checkout, model, name, dims, batch):
    path = checkout / "model_repository" / model / "1" / "model.onnx"
    assert path.exists(), "model_repository holds no weights. Run `make build-repo` first; `make test` does it."
    real, memory = _measured(path, {name: [batch, *dims]}), onnx_memory(path, batch=batch)
    assert memory.weights == pytest.approx(real["weights"], rel=0.15)
    assert memory.activations == pytest.approx(real["activations"], rel=0.15)
    assert memory.unknown == 0


@pytest.mark.slow
@pytest.mark.parametrize(("file", "batch", "new"), [("cross.onnx", 8, 1), ("decoder.onnx", 2, 448)])
def test_the_decoders_graphs_take_what_is_estimated(checkout, file, batch, new):
    """A prompt as long as the text context, where the decoder's tensors are largest."""
    path = checkout / "model_repository" / "whisper_decoder" / "1" / file
    assert path.exists(), "model_repository holds no weights. Run `make build-repo` first; `make test` does it."
    sizes = {"batch": batch, "past": 0, "new": new, "picks": 1}
    inputs = load_graph(file, path).graph.input
    shapes = {one.name: [dim.dim_value or sizes[dim.dim_param] for dim in one.type.tensor_type.shape.dim]
              for one in inputs}  # fmt: skip
    real, memory = _measured(path, shapes), onnx_memory(path, sizes)
    assert memory.weights == pytest.approx(real["weights"], rel=0.15)
    assert memory.activations == pytest.approx(real["activations"], rel=0.15)
