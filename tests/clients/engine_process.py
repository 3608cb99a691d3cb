"""Looks at the processes of a server: which is a model's, and whether the language model's engine works."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from embedded import EmbeddedServer
from starter.stubs import children, model_of, status


def model_processes(served: EmbeddedServer) -> dict[int, str]:
    """The processes of all Python models of this server, and whose they are."""
    found = {pid: model_of(pid) for pid in children(server_of(served)) if status(pid)[0] != "Z"}
    return {pid: model for pid, model in found.items() if model}


def model_process(served: EmbeddedServer, model: str) -> int:
    """The process of a Python model of this server."""
    found = [pid for pid, name in model_processes(served).items() if name == model]
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
