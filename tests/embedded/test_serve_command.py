"""The command `tritonkit serve` as a person runs it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

WriteModel = Callable[..., Path]


@pytest.fixture
def command(tmp_path: Path, checkout: Path) -> Callable[..., subprocess.Popen[str]]:
    """Runs `tritonkit serve` over the repository of this test."""

    def run(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tritonkit", "serve", str(tmp_path / "repository"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(checkout), "TRITONKIT_CACHE": str(checkout / ".cache")},
        )

    return run


FREE = ("--http-port", "0", "--grpc-port", "0", "--metrics-port", "0")


@pytest.mark.timing
@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_where_it_listens_and_ends_when_told(
    write_model: WriteModel, command: Callable[..., subprocess.Popen[str]], number: signal.Signals, tmp_path: Path
) -> None:
    write_model("echo")
    with command(*FREE, "--entry", "echo", "--log", "the.log") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready after ")
        address = process.stdout.readline().split()[1]
        with urllib.request.urlopen(f"{address}/v2/models/echo/ready") as answer:
            assert answer.status == 200
        rest = [process.stdout.readline().split()[0] for _ in range(4)]
        process.send_signal(number)
        began = time.monotonic()
        _, told = process.communicate(timeout=20)
    assert process.returncode == 0
    assert time.monotonic() - began < 9
    assert rest == ["gRPC", "metrics", "log", "Ask"]
    assert told.splitlines() == ["echo: loading", told.splitlines()[1], "ending the server"]
    assert told.splitlines()[1].startswith("echo: ready (")
    assert "successfully loaded 'echo'" in (tmp_path / "the.log").read_text()


@pytest.mark.server
def test_serve_in_order_loads_one_model_at_a_time_the_ensemble_last(
    write_model: WriteModel, command: Callable[..., subprocess.Popen[str]]
) -> None:
    write_model("z_echo")
    write_model("other")
    steps = 'ensemble_scheduling { step { model_name: "z_echo" model_version: -1 input_map { key: "X" value: "X" } '
    tensors = """
    input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] }
    output { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }
    """
    steps += 'output_map { key: "Y" value: "Y" } } }'
    write_model("a_whole", config=f'platform: "ensemble" {tensors} {steps}', code=None)
    with command(*FREE, "--in-order", "--entry", "a_whole") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=30)
    assert first.endswith(": a_whole\n")
    lines = [line.split("  ") for line in told.splitlines() if "/2 " in line]
    assert [(one[0], one[1].strip(), one[-1].split()[0]) for one in lines] == [
        ("1/2", "z_echo", "loading"),
        ("1/2", "z_echo", "ready"),
        ("2/2", "a_whole", "loading"),
        ("2/2", "a_whole", "ready"),
    ]


@pytest.mark.parametrize(
    ("host", "key", "is_warned"), [("0.0.0.0", "", True), ("0.0.0.0", "k", False), ("::1", "", False)]
)
def test_a_server_that_others_reach_without_a_key_is_warned_of(
    host: str, key: str, is_warned: bool, command: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONKIT_INFERENCE_KEY", key)
    with command(*FREE, "--host", host) as process:  # there is no repository: it does not start
        _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert ("warning: --host 0.0.0.0" in told and "set TRITONKIT_INFERENCE_KEY" in told) is is_warned


@pytest.mark.server
def test_serve_tells_why_a_model_does_not_load(
    write_model: WriteModel, command: Callable[..., subprocess.Popen[str]]
) -> None:
    write_model("bad", code="import pandas_of_nowhere")
    with command(*FREE) as process:
        out, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out == ""
    assert "bad: failed" in told
    assert "bad: ModuleNotFoundError: No module named 'pandas_of_nowhere' (" in told
    assert "pinned" not in told and "Traceback" not in told


def test_serve_refuses_a_taken_port_at_once(
    write_model: WriteModel, command: Callable[..., subprocess.Popen[str]]
) -> None:
    write_model("echo")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        with command(*FREE, "--http-port", port) as process:
            _, told = process.communicate(timeout=20)
    assert process.returncode == 1
    assert told == (
        f"port {port} on 127.0.0.1 is in use by another process. "
        "Stop that process, or choose another port with --http-port (0 takes a free one).\n"
    )


def test_serve_without_a_repository_says_so(command: Callable[..., subprocess.Popen[str]]) -> None:
    with command() as process:
        _, told = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "no such folder. Build it with `tritonkit build`" in told


def test_the_docker_command_is_printed(write_model: WriteModel, command: Callable[..., subprocess.Popen[str]]) -> None:
    folder = write_model("echo").parent
    with command("--gpu", "--dry-run", "--load", "echo", "--http-port", "9000") as process:
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert out.startswith("docker run --rm --init --gpus all --shm-size=2g ")
    assert f" -v {folder.resolve()}:/models:ro " in out
    keys = "-e TRITONKIT_MANAGEMENT_KEY -e TRITONKIT_INFERENCE_KEY"
    assert f" -e HF_TOKEN {keys} -e TRITONKIT_ENTRY=echo tritonkit/tritonserver:" in out
    assert " -p 127.0.0.1:9000:8000 -p 127.0.0.1:8001:8001 -p 127.0.0.1:8002:8002 " in out
    assert out.endswith(" python3 -m starter run --config-name gpu -- tritonserver\n")


def test_the_docker_command_takes_the_sizes_of_a_plan(
    write_model: WriteModel, command: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    write_model("echo")
    (tmp_path / "plan.env").write_text("CUDA_POOLS=0:123,1:7\nPINNED_POOL_BYTES=456\nSHM_SIZE=789m\n")
    with command("--gpu", "--dry-run", "--plan", str(tmp_path / "plan.env"), "--flag=--log-verbose=1") as process:
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert " --shm-size=789m " in out
    pools = "--cuda-memory-pool-byte-size=0:123 --cuda-memory-pool-byte-size=1:7 --pinned-memory-pool-byte-size=456"
    assert out.endswith(f" tritonserver {pools} --log-verbose=1\n")


def test_the_docker_command_for_a_stock_image(
    write_model: WriteModel, command: Callable[..., subprocess.Popen[str]]
) -> None:
    write_model("echo")
    with command("--gpu", "--dry-run", "--image", "stock-vllm") as process:
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert " -e TRITONKIT_ENTRY=echo " in out  # what it loads by itself, its health check must know, too
    assert "-vllm-python-py3 bash -c " in out
    assert "/embedded/backends/onnxruntime:/opt/tritonserver/backends/onnxruntime:ro" in out
    with command("--gpu", "--dry-run", "--image", "other") as process:
        _, told = process.communicate(timeout=20)
    assert (process.returncode, told) == (2, "--image other: built or stock-vllm is needed.\n")


def test_without_docker_or_gpu_it_says_so(
    write_model: WriteModel,
    command: Callable[..., subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    write_model("echo")
    monkeypatch.setenv("PATH", str(tmp_path))
    with command("--gpu") as process:
        _, told = process.communicate(timeout=20)
    assert process.returncode == 1
    assert told.startswith("docker: not found on PATH; a docker engine is needed.")


def test_a_dry_run_without_gpu_is_wrong_usage(command: Callable[..., subprocess.Popen[str]]) -> None:
    with command("--dry-run") as process:
        _, told = process.communicate(timeout=20)
    assert (process.returncode, told) == (2, "--dry-run goes with --gpu.\n")
