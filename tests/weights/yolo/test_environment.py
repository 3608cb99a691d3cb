"""Ultralytics' environment of its own."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from weights.yolo.environment import NAME, ultralytics_environment

pytestmark = pytest.mark.slow


def test_it_is_recognised_when_it_exists(ultralytics_python: Path, cache_folder: Path) -> None:
    said: list[str] = []
    assert ultralytics_environment(cache_folder, said.append) == ultralytics_python
    assert said == ["Ultralytics environment: reused"]


def test_it_borrows_torch_and_keeps_torchvision_to_itself(ultralytics_python: Path, cache_folder: Path) -> None:
    code = "import importlib.util as u; print(u.find_spec('torch').origin, u.find_spec('torchvision').origin)"
    done = subprocess.run([str(ultralytics_python), "-c", code], capture_output=True, text=True, check=True)
    torch, torchvision = done.stdout.split()
    here = importlib.util.find_spec("torch")
    assert here is not None
    assert torch == here.origin
    assert Path(torchvision).is_relative_to(cache_folder / NAME)
    assert importlib.util.find_spec("torchvision") is None
