"""A contender's processes: started, waited for, halted while another is measured, measured, ended.

CPU seconds and memory are those of the whole tree below one process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from benchmarks.peers.work.places import CACHE, ROOT

READY_S = 150.0
END_S = 3.0


def free_port() -> int:
    """A port with two free ones above it."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                for above in (1, 2):
                    socket.create_server(("127.0.0.1", port + above)).close()
                return port


class Tree:
    """A process and everything below it."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)

    def members(self) -> list[psutil.Process]:
        """All that live now."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self._root, *self._root.children(recursive=True)]
        return []

    def cpu_s(self) -> float:
        """CPU seconds so far; those of ended processes counted by whoever waited for them."""
        total = 0.0
        for one in self.members():
            with contextlib.suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def memory_bytes(self) -> int:
        """Memory now: what several processes share is counted once (PSS)."""
        total = 0
        for one in self.members():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                total += one.memory_full_info().pss
        return total

    def signal(self, number: int) -> None:
        """To all of them."""
        for one in self.members():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(number)

    def halt(self) -> None:
        """Takes no CPU until it goes on."""
        self.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Goes on after `halt`."""
        self.signal(signal.SIGCONT)


def end_all(trees: Sequence[Tree]) -> None:
    """Asks the first process of each to end, all at once, then kills what is left of any."""
    members = [one for tree in trees for one in tree.members()]
    for tree in trees:
        tree.go_on()
        for one in tree.members()[:1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.terminate()
    _, alive = psutil.wait_procs(members, timeout=END_S)
    for one in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(alive, timeout=END_S)


def start(
    name: str, command: Sequence[str], variables: Mapping[str, str], *, speaks: bool = False
) -> subprocess.Popen[bytes]:
    """A process of the benchmark in a session of its own; its words go to a file.

    Args:
        speaks: whether its input and output are pipes to us.
    """
    log = CACHE / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    pipe = subprocess.PIPE if speaks else None
    with log.open("wb") as words:
        return subprocess.Popen(
            list(command),
            stdin=pipe or subprocess.DEVNULL,
            stdout=pipe or words,
            stderr=words,
            cwd=ROOT,
            env={**os.environ, **quiet_environment(), **variables},
            start_new_session=True,
        )


def quiet_environment() -> dict[str, str]:
    """Nothing asks the network, nothing counts who uses it, everybody imports the same files."""
    return {
        "PYTHONPATH": str(ROOT),
        "ORT_DISABLE_TELEMETRY": "1",
        "BENTOML_DO_NOT_TRACK": "True",
        "BENTOML_HOME": str(CACHE / "bentoml"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "TOKENIZERS_PARALLELISM": "false",
    }


def wait_until_open(process: subprocess.Popen[bytes], url: str, name: str, *, needs_ok: bool = False) -> None:
    """Returns when something answers at `url`, whatever it says, or with 200 where that is needed.

    Raises:
        RuntimeError: it ended, or took too long.
    """
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended with {process.returncode}; see {log_of(name)}")
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError:
            if not needs_ok:
                return
            time.sleep(0.1)
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{name} did not answer at {url} within {READY_S:g} s; see {log_of(name)}")


def log_of(name: str) -> Path:
    """Where its words are."""
    return (CACHE / "logs" / f"{name}.log").relative_to(ROOT)
