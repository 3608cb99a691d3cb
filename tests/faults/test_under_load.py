"""All processes of a pipeline killed at once under `tritonkit serve`, with requests running.

The long form, one fault after the other, every model, with the language model and the gateway, is `make faults`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clients import ClientError, RequestTimeout, connect
from starter.stubs import children, model_of, status

pytestmark = [pytest.mark.server, pytest.mark.slow]

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


class Traffic:
    """Three callers that detect; the fate of every request is counted."""

    def __init__(self, grpc: str, picture: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._url, self._picture = f"grpc://{grpc}", picture
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(3)]

    def _run(self) -> None:
        with connect(self._url, timeout_s=60) as client:
            while not self._ended.is_set():
                self.counts["sent"] += 1
                try:
                    seen = client.detect(self._picture).items
                    fate = "answered" if any(one.label == "cup" for one in seen) else "wrong"
                except RequestTimeout:
                    fate = "lost"
                except ClientError:
                    fate = "failed cleanly"
                self.counts[fate] += 1
                time.sleep(0.05)

    def wait_for_answers(self, more: int = 5) -> None:
        """Return when so many requests were answered from now on."""
        wanted = self.counts["answered"] + more
        wait_until(lambda: self.counts["answered"] >= wanted)

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(70)


def processes(serve: int) -> dict[str, int]:
    """Each model's living process."""
    servers = [pid for supervisor in children(serve) for pid in children(supervisor)]
    stubs = [pid for server in servers for pid in children(server) if status(pid)[0] not in ("Z", "X", "")]
    return {model_of(pid): pid for pid in stubs if model_of(pid)}


def test_when_every_process_is_killed_all_come_back_and_no_request_is_lost(
    served_again: tuple[str, int], checkout: Path
) -> None:
    grpc, serve = served_again
    with Traffic(grpc, checkout / "samples" / "coffee.jpg") as traffic:
        traffic.wait_for_answers()
        killed = processes(serve)
        assert set(killed) == MODELS
        for pid in killed.values():
            os.kill(pid, signal.SIGKILL)
        wait_until(
            lambda: set(processes(serve)) == MODELS and not set(killed.values()) & set(processes(serve).values())
        )
        traffic.wait_for_answers()
    counts = traffic.counts
    assert counts["wrong"] == counts["lost"] == 0, counts
    assert counts["failed cleanly"] > 0, counts
    assert counts["sent"] == counts["answered"] + counts["failed cleanly"], counts


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + BACK_WITHIN_S
    while not is_so():
        assert time.monotonic() < end, "not all came back"
        time.sleep(0.1)
