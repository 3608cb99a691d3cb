"""The console command: the commands of all packages under one name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tritonkit.__main__ import EXTRAS, joined, missing_package


def run(*arguments: str, checkout: Path, before: str = "pass") -> subprocess.CompletedProcess[str]:
    """`tritonkit` with these arguments, after some statements."""
    code = f"import sys; {before}; sys.argv = ['tritonkit', *sys.argv[1:]]; from tritonkit.__main__ import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, timeout=60
    )


def test_help_lists_the_commands_of_every_package(checkout: Path) -> None:
    result = run("--help", checkout=checkout)
    assert result.returncode == 0
    for command in ("build", "check", "diff", "draw", "serve", "ask", "transcribe", "detect", "chat", "weights"):
        assert f" {command} " in result.stdout


def test_no_command_is_there_twice() -> None:
    app, owners = joined()
    names = [command.name or (command.callback and command.callback.__name__) for command in app.registered_commands]
    assert len(names) == len(set(names))
    assert set(owners.values()) == set(EXTRAS)


def test_help_loads_nothing_heavy(checkout: Path) -> None:
    heavy = ["torch", "onnxruntime", "onnx", "vllm", "transformers", "ray", "grpc", "tritonclient.grpc", "whisper"]
    heavy += ["asyncio", "builder.rules", "google.protobuf", "markdown_it", "numpy"]
    code = f"""
import json, sys
from tritonkit.__main__ import joined
joined()
print(json.dumps([name for name in {heavy} if name in sys.modules]))
"""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(result.stdout) == []


def test_the_version_is_printed(checkout: Path) -> None:
    result = run("--version", checkout=checkout)
    assert result.returncode == 0
    assert result.stdout.startswith("tritonkit")


def test_an_unknown_command_is_wrong_usage(checkout: Path) -> None:
    result = run("sreve", checkout=checkout)
    assert result.returncode == 2
    assert "sreve" in result.stderr


def test_a_command_without_its_packages_names_the_extra(checkout: Path, tmp_path: Path) -> None:
    recording = tmp_path / "silence.wav"
    recording.write_bytes(b"RIFF")
    result = run("transcribe", str(recording), checkout=checkout, before="sys.modules['soundfile'] = None")
    assert result.returncode == 1
    assert result.stderr.endswith(
        "tritonkit transcribe: the Python package `soundfile` is not installed. "
        "Install what it needs: pip install 'tritonkit[clients]'\n"
    )


@pytest.mark.parametrize(("owner", "remedy"), [("embedded", "'tritonkit[server]'"), ("builder", "tritonkit")])
def test_the_remedy_fits_the_package(owner: str, remedy: str) -> None:
    assert missing_package("x", "y", owner).endswith(f"pip install {remedy}")
