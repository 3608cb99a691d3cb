"""A real tritonserver with stand-in models that are slow, fail or stream on demand.

The models (stand_ins/) carry the tensor names of the shipped pipelines, so every client call works on them, and a
test can choose what a real model would do only by chance: to be slow, to fail in the middle, to note that the caller
went away.
"""

import json
import os
import shutil
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

import pytest

from embedded import EmbeddedServer

sys.path.insert(0, str(Path(__file__).parent))

from engine_process import Engine, model_process

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


class StandIns:
    """One embedded server over the stand-ins. http, grpc: its addresses with their scheme."""

    def __init__(self, folder: Path, load: tuple[str, ...], flags: Sequence[str] = ()) -> None:
        self._server = EmbeddedServer(
            write_repository(folder / "repository"),
            load=load,
            log_file=folder / "server.log",
            stop_timeout_s=1,
            cpu_threads=1,
            flags=flags,
        )

    def __enter__(self) -> Self:
        self._server.__enter__()
        self.http, self.grpc = f"http://{self._server.http}", f"grpc://{self._server.grpc}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def kill(self) -> None:
        self._server.stop(timeout_s=0)

    def freeze(self) -> None:
        """Stops the process in its tracks: connections stay, nothing answers."""
        os.kill(self._server.server_pid(), signal.SIGSTOP)

    def region_names(self) -> list[str]:
        with urllib.request.urlopen(f"{self.http}/v2/systemsharedmemory/status", timeout=5) as answer:
            return [region["name"] for region in json.load(answer)]


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIns]:
    """One server for all tests that leave it alive."""
    with StandIns(tmp_path_factory.mktemp("stand_ins"), tuple(MODELS)) as server:
        yield server


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[StandIns]:
    """A server of its own for a test that kills it; two models only, for a quick start."""
    with StandIns(tmp_path, ("llm", "assistant_audio")) as server:
        yield server


def shared_memory_objects() -> list[str]:
    return [path.name for path in Path("/dev/shm").glob("tritonkit-client-*")]


@pytest.fixture
def nothing_is_left(stand_ins: StandIns) -> Iterator[None]:
    """Fails a test that leaves a region of a client on this machine or in the server."""
    yield
    wait_until(lambda: not stand_ins.region_names(), "the server still maps regions")
    assert shared_memory_objects() == []


def wait_until(is_so: Callable[[], object], otherwise: str, limit_s: float = 10) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)


@pytest.fixture
def wait() -> Callable[..., None]:
    """Waits for a condition: wait(is_so, otherwise)."""
    return wait_until


@pytest.fixture(scope="session")
def engine(served: EmbeddedServer) -> Engine:
    """The engine of the shipped language model."""
    return Engine(model_process(served, "llm"))
