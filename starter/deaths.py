"""Which Python models of a server have lost a process, and what those processes had started.

In: the server's process. Out: deaths, each once. A dead process, a zombie below the server, is the only sign: the
server goes on calling the model ready.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from starter.stubs import children, model_of, status

DEAD_AFTER_S = 1.0  # the server collects a process that ends as planned at once
LOOK_BELOW_EVERY_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A model that lost its process.

    Attributes:
        model: "" when the process lived too shortly to be seen alive; a zombie does not tell any more what it ran.
        orphans: what the process had started, such as an engine, with start times.
    """

    model: str
    pid: int
    orphans: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class DeadModels:
    """Which models of a server have lost their process since the last look."""

    _models: dict[int, str] = field(default_factory=dict)
    _below: dict[int, dict[int, int]] = field(default_factory=dict)
    _dead_since: dict[int, float] = field(default_factory=dict)
    _told: set[int] = field(default_factory=set)
    _looked_below_s: float = -math.inf

    def look(self, server: int) -> list[Death]:
        """Processes that are dead for more than a second, each once."""
        now = time.monotonic()
        found = []
        pids = children(server)
        if self._models.keys() - pids:
            pids = list({*pids, *children(server)})
        is_time = now - self._looked_below_s > LOOK_BELOW_EVERY_S
        for pid in pids:
            if status(pid)[0] != "Z":
                self._models[pid] = self._models.get(pid) or model_of(pid)
                if is_time and self._models[pid]:
                    self._below[pid] = started_below(pid)
            elif self._is_dead(pid, now):
                self._told.add(pid)
                model, below = self._models.get(pid, ""), self._below.get(pid, {})
                found.append(Death(model=model, pid=pid, orphans=tuple(below.items())))
        if is_time:
            self._looked_below_s = now
        for gone in (set(self._models) | set(self._dead_since)) - set(pids):
            for known in (self._models, self._below, self._dead_since):
                known.pop(gone, None)
            self._told.discard(gone)
        return found

    def _is_dead(self, pid: int, now: float) -> bool:
        return now - self._dead_since.setdefault(pid, now) > DEAD_AFTER_S and pid not in self._told


def started_below(pid: int) -> dict[int, int]:
    """Every process below another one, with its start time, which tells it from a later one of the same number."""
    found: dict[int, int] = {}
    todo = [pid]
    while todo:
        for one in children(todo.pop()):
            if (start := start_time(one)) is not None:
                found[one] = start
                todo.append(one)
    return found


def start_time(pid: int) -> int | None:
    """When a process began, in the kernel's ticks; None when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return None


def end_orphans(death: Death) -> int:
    """Kills what a dead process left behind: an engine would keep its memory for ever. How many there were."""
    left = [pid for pid, start in death.orphans if start_time(pid) == start and status(pid)[0] != "Z"]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)
