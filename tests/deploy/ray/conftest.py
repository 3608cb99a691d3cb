"""The stand-in models of the clients' tests, for replicas."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def write_stand_ins(checkout: Path) -> Callable[[Path], Path]:
    """Writes their repository into a folder."""
    spec = importlib.util.spec_from_file_location("stand_in_models", checkout / "tests" / "clients" / "conftest.py")
    assert spec and spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_repository


@pytest.fixture(scope="session")
def wait() -> Callable[[Callable[[], object], str], None]:
    """Waits for a condition: wait(is_so, otherwise)."""

    def until(is_so: Callable[[], object], otherwise: str) -> None:
        end = time.monotonic() + 30
        while not is_so():
            assert time.monotonic() < end, otherwise
            time.sleep(0.05)

    return until
