"""Processes that died while they loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from embedded import stubs
from embedded.stubs import StubWatch, how_it_ended
from starter.stubs import children


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A process that never collects its only child, which dies at once by signal 9."""
    monkeypatch.setattr(stubs, "DEAD_AFTER_S", 0.1)
    code = "import subprocess, time; kept = subprocess.Popen(['sh', '-c', 'kill -9 $$']); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        while not children(process.pid) or stubs.status(children(process.pid)[0])[0] != "Z":
            time.sleep(0.01)
        yield process.pid
        process.kill()


def dead_soon(watch: StubWatch, parent: int, loading: list[str]) -> dict[str, str]:
    """What the watch says as soon as it says anything."""
    deadline = time.monotonic() + 10
    while not (found := watch.dead(parent, loading)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def test_a_dead_process_that_was_never_seen_alive_is_laid_to_those_still_loading(parent: int) -> None:
    began = time.monotonic()
    found = dead_soon(StubWatch(), parent, ["a"])
    words = (
        "its process was ended by signal 9 (SIGKILL) while it loaded, which the system also does when memory runs out"
    )
    assert found == {"a": words}
    assert time.monotonic() - began > 0.1


def test_a_dead_process_is_laid_to_its_model(parent: int) -> None:
    assert set(dead_soon(StubWatch(_models={children(parent)[0]: "b"}), parent, ["a", "b"])) == {"b"}


def test_how_a_process_ended_is_told() -> None:
    assert how_it_ended(3 << 8) == "its process ended with status 3 while it loaded"
    assert how_it_ended(signal.SIGSEGV) == "its process was ended by signal 11 (SIGSEGV) while it loaded"


def test_this_process_has_no_such_children() -> None:
    assert StubWatch().dead(os.getpid(), ["a"]) == {}
