"""All processes of a pipeline killed at once under `tritonkit serve`, with requests running.

The long form, one fault after the other, every model, with the language model and the gateway, is `make faults`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.callers import Callers
from clients import Client, ClientError, RequestTimeout, connect
from starter.stubs import children, model_of, status

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timing]

MODELS = {"yolo_preprocess", "yolo", "yolo_postprocess"}
BACK_WITHIN_S = 90


@pytest.fixture
def served_again(checkout: Path, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """`tritonkit serve` over the shipped models that detect: its gRPC address and its process."""
    ports = ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--log", str(tmp_path / "server.log")]
    command = [sys.executable, "-m", "tritonkit", "serve", str(checkout / "model_repository"), *ports]
    with subprocess.Popen(
        [*command, "--load", "detect", "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=checkout,
        env={**os.environ},
    ) as process:
        try:
            assert process.stdout
            yield next(found[1] for line in process.stdout if (found := re.search(r"gRPC\s+(\S+)", line))), process.pid
        finally:
            process.terminate()
            process.wait(60)


def detecting(grpc: str, picture: Path) -> Callers:
    """Three callers that detect."""

    @contextmanager
    def connected(number: int) -> Iterator[Callable[[], str]]:
        with connect(f"grpc://{grpc}", timeout_s=60) as client:
            yield lambda: fate(client)

    def fate(client: Client) -> str:
        try:
            seen = client.detect(picture).items
        except RequestTimeout:
            return "lost"
        except ClientError:
            return "failed cleanly"
        return "answered" if any(one.label == "cup" for one in seen) else "wrong"

    return Callers(connected, pause_s=0.05)


def processes(serve: int) -> dict[str, int]:
    """Each model's living process."""
    servers = [pid for supervisor in children(serve) for pid in children(supervisor)]
    stubs = [pid for server in servers for pid in children(server) if status(pid)[0] not in ("Z", "X", "")]
    return {model_of(pid): pid for pid in stubs if model_of(pid)}


def test_when_every_process_is_killed_all_come_back_and_no_request_is_lost(
    served_again: tuple[str, int], checkout: Path
) -> None:
    grpc, serve = served_again
    with detecting(grpc, checkout / "samples" / "coffee.jpg") as callers:
        callers.wait_for("answered", 5)
        killed = processes(serve)
        assert set(killed) == MODELS
        for pid in killed.values():
            os.kill(pid, signal.SIGKILL)
        wait_until(
            lambda: set(processes(serve)) == MODELS and not set(killed.values()) & set(processes(serve).values())
        )
        callers.wait_for("answered", 5)
    counts = callers.counts
    assert counts["wrong"] == counts["lost"] == 0, counts
    assert counts["failed cleanly"] > 0, counts
    assert counts["sent"] == counts["answered"] + counts["failed cleanly"], counts


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + BACK_WITHIN_S
    while not is_so():
        assert time.monotonic() < end, "not all came back"
        time.sleep(0.1)
