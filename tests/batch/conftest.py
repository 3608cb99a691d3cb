"""The stand-in models of the clients' tests on a real server, and ways to run the command."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tritonkit.__main__ import joined

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def stand_in_module() -> Any:
    """tests/clients/conftest.py, for the models it writes."""
    spec = importlib.util.spec_from_file_location("stand_in_models", CHECKOUT / "tests" / "clients" / "conftest.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def server(stand_in_module: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server with stand-ins: `.grpc` and `.http` are its addresses."""
    models = (
        "transcribe",
        "detect",
        "llm",
        "assistant",
        "assistant_audio",
        "assistant_image",
        "assistant_text",
        "echo",
    )
    with stand_in_module.StandIns(tmp_path_factory.mktemp("batch_server"), models) as running:
        yield running


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `tritonkit batch ...`; whatever is left at the end of the test is killed."""
    processes: list[subprocess.Popen[str]] = []

    def run(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tritonkit", "batch", *map(str, words)]
        environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
        process = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Runs the command to its end, in this process: exit status and stderr."""
    monkeypatch.chdir(CHECKOUT)

    def call(*words: object) -> tuple[int, str]:
        done = CliRunner().invoke(joined()[0], ["batch", *map(str, words)])
        return done.exit_code, done.stderr

    return call


@pytest.fixture
def lines() -> Callable[[Path], list[dict[str, Any]]]:
    """The rows of a JSONL file."""
    return lambda path: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
