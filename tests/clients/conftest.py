"""A real tritonserver with stand-in models that are slow, fail or stream on demand.

The models (stand_ins/) carry the tensor names of the shipped pipelines, so every client call works on them, and a
test can choose what a real model would do only by chance: to be slow, to fail in the middle, to note that the caller
went away.
"""

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

STAND_INS = Path(__file__).parent / "stand_ins"
TEXT = "TYPE_STRING"
SAMPLING = [("LANGUAGE", TEXT, 1), ("TASK", TEXT, 1), ("MODE", TEXT, 1)]
BOXING = [("CONFIDENCE", "TYPE_FP32", 1), ("IOU", "TYPE_FP32", 1)]
AUDIO, IMAGE = ("AUDIO", "TYPE_FP32", -1), ("IMAGE", "TYPE_UINT8", -1)
ASKING = [("QUESTION", TEXT, 1), ("SAMPLING_PARAMETERS", TEXT, 1)]
ANSWER = [("TEXT", TEXT, 1), ("FINISH_REASON", TEXT, 1), ("PROMPT_TOKENS", "TYPE_INT32", 1)]
ANSWER += [("COMPLETION_TOKENS", "TYPE_INT32", 1)]
SIDE = [("TRANSCRIPT", TEXT, 1), ("DETECTIONS", TEXT, 1)]


def config(source: str, inputs: list, outputs: list, extra: str = "") -> tuple[str, str]:
    """The stand-in's source file and its config.pbtxt; every input is optional, as most are in the pipelines."""

    def tensors(kind: str, rows: list, more: str) -> str:
        return "\n".join(f'{kind} [{{name: "{n}" data_type: {t} dims: [{d}]{more}}}]' for n, t, d in rows)

    lines = ['backend: "python"', tensors("input", inputs, " optional: true"), tensors("output", outputs, "")]
    return source, "\n".join([*lines, "instance_group [{kind: KIND_CPU}]", extra])


def streaming(*inputs: tuple) -> tuple[str, str]:
    return config("llm", [*inputs, *ASKING], SIDE + ANSWER, "model_transaction_policy {decoupled: true}")


HEARD = [("TRANSCRIPT", TEXT, 1), ("SEGMENTS", TEXT, 1), ("DETECTED_LANGUAGE", TEXT, 1)]
SEEN = [("BOXES", "TYPE_FP32", "-1, 4"), ("SCORES", "TYPE_FP32", -1), ("CLASSES", "TYPE_INT32", -1)]
SEEN += [("LABELS", TEXT, -1), ("DETECTIONS", TEXT, 1)]
LLM_INPUTS = [("MESSAGES", TEXT, 1), ("PROMPT", TEXT, 1), ASKING[1], *SIDE]
MODELS = {
    "transcribe": config("transcribe", [AUDIO, *SAMPLING], HEARD),
    "detect": config("detect", [IMAGE, *BOXING], SEEN),
    "llm": config("llm", LLM_INPUTS, SIDE + ANSWER, "model_transaction_policy {decoupled: true}"),
    "assistant": streaming(AUDIO, IMAGE, *SAMPLING, *BOXING),
    "assistant_audio": streaming(AUDIO, *SAMPLING),
    "assistant_image": streaming(IMAGE, *BOXING),
    "assistant_text": streaming(),
    "echo": config("echo", [("X", "TYPE_FP32", -1)], [("Y", "TYPE_FP32", -1)]),
    "echo_text": config("echo", [("X", TEXT, -1)], [("Y", TEXT, -1)]),
    "echo_batched": config("echo", [("X", "TYPE_FP32", 4)], [("Y", "TYPE_FP32", 4)], "max_batch_size: 8"),
}


def write_repository(folder: Path) -> Path:
    for name, (source, text) in MODELS.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(text)
        shutil.copy(STAND_INS / f"{source}.py", folder / name / "1" / "model.py")
    return folder


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class StandInServer:
    """One tritonserver process over the stand-ins; http, grpc: addresses with their scheme."""

    def __init__(self, folder: Path, load: tuple[str, ...] = tuple(MODELS)) -> None:
        import pytriton

        binaries = Path(next(iter(pytriton.__path__))) / "tritonserver"
        self.log = folder / "server.log"
        backend = folder / "backends" / "python"
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        for part in (binaries / "backends" / "python", binaries / "python_backend_stubs" / minor):
            shutil.copytree(part, backend, dirs_exist_ok=True)
        http, grpc = free_ports(2)
        self.http, self.grpc = f"http://127.0.0.1:{http}", f"grpc://127.0.0.1:{grpc}"
        arguments = {
            "model-repository": write_repository(folder / "repository"),
            "backend-directory": backend.parent,
            "http-port": http,
            "grpc-port": grpc,
            "allow-metrics": "false",
            "http-address": "127.0.0.1",
            "grpc-address": "127.0.0.1",
            "exit-timeout-secs": 1,
            "model-control-mode": "explicit",
        }
        libraries = [sysconfig.get_config_var("LIBDIR"), str(binaries.parents[1] / "nvidia_pytriton.libs")]
        environment = dict(os.environ, LD_LIBRARY_PATH=":".join(libraries))
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        command = [str(binaries / "bin" / "tritonserver"), *(f"--{key}={value}" for key, value in arguments.items())]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, *(f"--load-model={name}" for name in load)], env=environment, stdout=log, stderr=log
            )

    def wait_until_ready(self, limit_s: float = 60) -> None:
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()
            try:
                with urllib.request.urlopen(f"{self.http}/v2/health/ready", timeout=1):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError(f"not ready after {limit_s} s\n{self.log.read_text()}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInServer]:
    """One server for all tests that leave it alive."""
    server = StandInServer(tmp_path_factory.mktemp("stand_in"))
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[StandInServer]:
    """A server of its own for a test that kills it; only the streaming model is loaded, for a quick start."""
    server = StandInServer(tmp_path, load=("llm",))
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()
