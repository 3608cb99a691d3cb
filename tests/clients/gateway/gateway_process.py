"""The gateway as its own process, and looks at the server behind it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from embedded import EmbeddedServer
from starter.stubs import children, model_of, status

READY = re.compile(r"ready: (http://\S+)")
START_LIMIT_S = 60


class Gateway:
    """One gateway process. url: its address, such as http://127.0.0.1:9000."""

    def __init__(self, server: str, *options: str, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "clients.gateway", "--server", server, "--port", "0", *options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            cwd=Path(__file__).parents[3],
        )
        alarm = threading.Timer(START_LIMIT_S, self.process.kill)
        alarm.start()
        line = self.process.stdout.readline() if self.process.stdout else ""
        alarm.cancel()
        found = READY.match(line)
        if found is None:
            self.process.kill()
            pytest.fail(f"the gateway did not start: {line}{self.process.communicate()[1]}")
        self.url = found[1]
        self.api = f"{self.url}/v1"

    def stop(self) -> tuple[int, str]:
        """Exit status and what it said on stderr."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            _, errors = self.process.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, errors = self.process.communicate()
        return self.process.returncode, errors

    def metrics(self) -> dict[str, float]:
        """Every sample, by its name with its labels."""
        return samples_of(f"{self.url}/metrics")


def samples_of(url: str) -> dict[str, float]:
    """The samples of a Prometheus page, by name with labels."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def model_process(served: EmbeddedServer, model: str) -> int:
    """The process of a Python model of this server."""
    found = [pid for pid in children(server_of(served)) if model_of(pid) == model and status(pid)[0] != "Z"]
    assert len(found) == 1, f"{len(found)} processes of {model}"
    return found[0]


def server_of(served: EmbeddedServer) -> int:
    """The tritonserver process itself."""
    port = served.grpc.rpartition(":")[2]
    found = [pid for pid in processes() if f"--grpc-port={port}" in arguments_of(pid)[1:] and is_server(pid)]
    assert len(found) == 1, f"{len(found)} servers on port {port}"
    return found[0]


def processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def arguments_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def is_server(pid: int) -> bool:
    return arguments_of(pid)[0].endswith("/tritonserver")


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(is_so: Callable[[], object], otherwise: str, limit_s: float = 10) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)


class Engine:
    """Whether the engine of the language model works, by the processor time of its process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def is_busy(self) -> bool:
        """Looks for a quarter of a second."""
        before = cpu_seconds(self._pid)
        time.sleep(0.25)
        return cpu_seconds(self._pid) - before > 0.02

    def wait_until_busy(self) -> None:
        wait_until(self.is_busy, "the engine has nothing to do")

    def wait_until_idle(self, limit_s: float) -> None:
        wait_until(lambda: not self.is_busy() and not self.is_busy(), "the engine still works", limit_s)
