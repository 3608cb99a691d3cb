"""Small ONNX files, and the backend's own modules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

BACKEND = Path(__file__).parents[4] / "embedded" / "backends" / "onnxruntime"
Shape = Sequence[int | str]


@pytest.fixture
def backend_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the modules beside the backend's model.py importable, as the server does."""
    monkeypatch.syspath_prepend(str(BACKEND))


@pytest.fixture(scope="session")
def onnx_files() -> SimpleNamespace:
    """Writers of ONNX files: `save(path, nodes, inputs, outputs)` and `double(repository, name, shape, ...)`."""
    return SimpleNamespace(save=save_onnx, double=double)


def save_onnx(
    path: Path,
    nodes: Sequence[Any],
    inputs: dict[str, tuple[int, Shape]],
    outputs: dict[str, tuple[int, Shape]],
    initializers: Sequence[Any] = (),
) -> Path:
    """One ONNX file as Triton 24.10 can read it."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in outputs.items()],
        list(initializers),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def double(repository: Path, name: str, shape: Shape, kind: int = TensorProto.FLOAT, config: str = "") -> Path:
    """A model that answers Y = X + X."""
    save_onnx(
        repository / name / "1" / "model.onnx",
        [helper.make_node("Add", ["X", "X"], ["Y"])],
        {"X": (kind, shape)},
        {"Y": (kind, shape)},
    )
    if config:
        (repository / name / "config.pbtxt").write_text(config)
    return repository / name
