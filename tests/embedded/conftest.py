"""Small repositories for the embedded server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from embedded import EmbeddedServer

CONFIG = """
backend: "python"
input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }
"""
ECHO = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("Y", request.inputs()[0].as_numpy())]) for request in requests
        ]
"""
WriteModel = Callable[..., Path]
Serve = Callable[..., EmbeddedServer]


@pytest.fixture
def write_model(tmp_path: Path) -> WriteModel:
    """Writes a model into the repository of this test: name, text of config.pbtxt, text of model.py (None: no file)."""

    def write(name: str, config: str = CONFIG, code: str | None = ECHO) -> Path:
        folder = tmp_path / "repository" / name
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(config)
        if code is not None:
            (folder / "1" / "model.py").write_text(code)
        return folder

    return write


@pytest.fixture
def serve(tmp_path: Path, checkout: Path) -> Iterator[Serve]:
    """Makes a server over the repository of this test; whatever was started is ended."""
    made: list[EmbeddedServer] = []

    def make(**options: object) -> EmbeddedServer:
        settings: dict = {"cache": checkout / ".cache", "log_file": tmp_path / "server.log", **options}
        made.append(EmbeddedServer(tmp_path / "repository", **settings))
        return made[-1]

    yield make
    for server in made:
        server.stop(timeout_s=0)
