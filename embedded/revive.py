"""Loads a Python model anew when its process has died. Triton 2.51 does not: every later request of it would fail.

The server goes on calling such a model ready. Its dead process, a zombie below the server, is the only sign. Unloading
the model makes readiness tell the truth, and lets go of the requests that the process took with it; loading it starts a
new process, and the ensembles that use it come back with it. That needs model control in explicit mode.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from starter.stubs import children, model_of, status

DEAD_AFTER_S = 1.0  # the server collects a process that ends as planned at once
MOST_AN_HOUR = 5  # then something is wrong that a new process does not cure
UNLOADED_WITHIN_S = 30.0
AT_WORK_S = 60.0
LOOK_BELOW_EVERY_S = 2.0
LOADED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A model that lost its process. orphans: what that process had started, such as an engine, with start times."""

    model: str
    orphans: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class DeadModels:
    """Which models of a server have lost their process since the last look.

    Attributes:
        last_s: when a model's process was first seen dead, by the monotonic clock.
    """

    last_s: float = -math.inf
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
        is_time = now - self._looked_below_s > LOOK_BELOW_EVERY_S
        for pid in pids:
            if status(pid)[0] != "Z":
                self._models[pid] = self._models.get(pid) or model_of(pid)
                if is_time and self._models[pid]:
                    self._below[pid] = started_below(pid)
            elif self._models.get(pid) and self._is_dead(pid, now):
                self._told.add(pid)
                found.append(Death(model=self._models[pid], orphans=tuple(self._below.get(pid, {}).items())))
        if is_time:
            self._looked_below_s = now
        for gone in set(self._models) - set(pids):
            del self._models[gone]
            self._below.pop(gone, None)
        return found

    def _is_dead(self, pid: int, now: float) -> bool:
        if pid not in self._dead_since:
            self._dead_since[pid] = self.last_s = now
        return now - self._dead_since[pid] > DEAD_AFTER_S and pid not in self._told


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


class Reviver:
    """Watches one server.

    Args:
        http_address: `host:port` of its HTTP endpoint.
        headers: what its management API asks for.
        say: called with a line for people whenever something happened.
    """

    def __init__(self, http_address: str, headers: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._http_address, self._headers, self._say = http_address, dict(headers), say
        self._dead = DeadModels()
        self._deaths: dict[str, list[float]] = {}
        self._work: threading.Thread | None = None

    def poll(self, server: int) -> None:
        """Look once, and begin to load anew what has died; returns at once. To be called a few times a second."""
        if self._work is not None and self._work.is_alive():
            return
        deaths = self._dead.look(server)
        for death in deaths:
            if left := end_orphans(death):
                self._say(f"{death.model}: ended {left} of its processes that were left behind")
        models = [death.model for death in deaths if self._may_live(death.model)]
        if models:
            self._work = threading.Thread(target=self._revive, args=(models,), name="reviver", daemon=True)
            self._work.start()

    def was_at_work(self) -> bool:
        """Whether a model's process has died within the last minute, be it too late to do anything about it."""
        return time.monotonic() - self._dead.last_s < AT_WORK_S

    def _may_live(self, model: str) -> bool:
        now = time.monotonic()
        deaths = [at for at in self._deaths.get(model, ()) if now - at < 3600]
        self._deaths[model] = [*deaths, now]
        if len(deaths) < MOST_AN_HOUR:
            return True
        found = f"its process has died {len(deaths) + 1} times within an hour; it stays down"
        self._say(f"{model}: {found}. Look for the reason in the server's log, then start the server again.")
        return False

    def _revive(self, models: list[str]) -> None:
        for model in models:
            self._say(f"{model}: its process has died; loading it anew")
            began = time.monotonic()
            try:
                self._ask(f"/v2/repository/models/{model}/unload", UNLOADED_WITHIN_S)
                self._ask(f"/v2/repository/models/{model}/load", LOADED_WITHIN_S)
            except (OSError, http.client.HTTPException, RefusedError) as error:
                self._say(f"{model}: could not be loaded anew: {error}")
            else:
                self._say(f"{model}: ready again after {time.monotonic() - began:.1f} s")

    def _ask(self, path: str, timeout_s: float) -> None:
        connection = http.client.HTTPConnection(self._http_address, timeout=timeout_s)
        try:
            connection.request("POST", path, b"{}", {"Content-Type": "application/json", **self._headers})
            answer = connection.getresponse()
            words = answer.read()
            if answer.status != 200:
                raise RefusedError(why(words))
        finally:
            connection.close()


def controlled(load: Sequence[str] | None, flags: Sequence[str]) -> tuple[str, ...]:
    """The flags, with what lets models be loaded anew: everything is still loaded at the start if `load` is None."""
    has_mode = any(flag.startswith("--model-control-mode") for flag in flags)
    if load is not None or has_mode:
        return tuple(flags)
    return ("--model-control-mode=explicit", "--load-model=*", *flags)


class RefusedError(Exception):
    """The server did not do what it was asked."""


def why(words: bytes) -> str:
    """The server's own words."""
    try:
        return str(json.loads(words)["error"])
    except (ValueError, KeyError, TypeError):
        return words.decode(errors="replace") or "no reason given"
