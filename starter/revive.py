"""Loads a Python model anew when its process has died. Triton 2.51 does not: every later request of it would fail.

Unloading the model makes readiness tell the truth, and lets go of the requests that the process took with it; loading
it starts a new process, and the ensembles that use it come back with it. That needs model control in explicit mode.
Used by this program in containers and by `tritonkit serve` alike.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starter.deaths import DeadModels, Death, end_orphans
from starter.errors import LoadError, StarterError
from starter.server import Server
from starter.stubs import children, living, status

MOST_AN_HOUR = 5  # then something is wrong that a new process does not cure
GONE_WITHIN_S = 5.0
AGAIN_AFTER_S = 1.0
HUNG_AFTER_S = 3.0  # the server collects a process of its own at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load in progress. before: the server's processes when it began; dead_since: those that came later and died."""

    before: frozenset[int]
    dead_since: dict[int, float] = field(default_factory=dict)

    def is_hung(self, pid: int) -> bool:
        """Whether a process that came with this load has been dead for seconds.

        The first process of a Python model only completes its config. When that one dies, Triton 2.51 waits for ever
        and answers no other request of its management either; when the second one dies, it says so.
        """
        now = time.monotonic()
        for one in children(pid):
            if one not in self.before and status(one)[0] == "Z":
                self.dead_since.setdefault(one, now)
            else:
                self.dead_since.pop(one, None)
        return any(now - since > HUNG_AFTER_S for since in self.dead_since.values())


class Reviver:
    """Watches one server.

    Args:
        server: its management, with the key that this asks for.
        say: called with a line for people whenever something happened.

    Attributes:
        given_up: models that died too often, and stay down.
    """

    def __init__(self, server: Server, say: Callable[[str], None]) -> None:
        self.given_up: set[str] = set()
        self._server, self._say = server, say
        self._dead = DeadModels()
        self._waiting: list[Death] = []
        self._deaths: dict[str, list[float]] = {}
        self._work: threading.Thread | None = None
        self._load: Load | None = None  # set and cleared by the thread of `_work`

    def poll(self, pid: int) -> None:
        """Look once at the server's process, and begin to load anew what has died; returns at once.

        To be called a few times a second.
        """
        for death in self._dead.look(pid):
            if left := end_orphans(death):
                self._say(f"{death.model}: ended {left} of its processes that were left behind")
            self._waiting.append(death)
        if self._work is not None and self._work.is_alive():
            if (load := self._load) is not None and load.is_hung(pid):
                self._end(pid, "a model's process died while it loaded, and the server waits for it for ever")
            return
        # The server has collected those that died while they loaded, and said so: they were loaded again.
        dead = list(dict.fromkeys(one.model for one in self._waiting if status(one.pid)[0] == "Z"))
        self._waiting.clear()
        if dead:
            self._work = threading.Thread(target=self._revive, args=(pid, dead), name="reviver", daemon=True)
            self._work.start()

    def _may_live(self, model: str) -> bool:
        now = time.monotonic()
        deaths = [at for at in self._deaths.get(model, ()) if now - at < 3600]
        self._deaths[model] = [*deaths, now]
        if len(deaths) < MOST_AN_HOUR:
            return True
        self.given_up.add(model)
        found = f"its process has died {len(deaths) + 1} times within an hour; it stays down"
        self._say(f"{model}: {found}. Look for the reason in the server's log, then start the server again.")
        return False

    def _revive(self, pid: int, dead: list[str]) -> None:
        try:
            for model in self._named(pid, dead):
                if self._may_live(model):
                    self._say(f"{model}: its process has died; loading it anew")
                    self._load_anew(pid, model)
        except StarterError as error:
            self._end(pid, str(error))

    def _named(self, pid: int, dead: list[str]) -> list[str]:
        """The models to load anew. Of a process that nobody saw alive, it is that which lacks one."""
        if "" not in dead:
            return dead
        alive = living(pid)
        lacking = [model for model, wanted in self._server.processes().items() if alive.get(model, 0) < wanted]
        return list(dict.fromkeys([*filter(None, dead), *lacking]))

    def _load_anew(self, pid: int, model: str) -> None:
        began = time.monotonic()
        while not self._is_loaded(pid, model):
            if not self._may_live(model):
                return
            time.sleep(AGAIN_AFTER_S)
        self._say(f"{model}: ready again after {time.monotonic() - began:.1f} s")

    def _is_loaded(self, pid: int, model: str) -> bool:
        """Unload and load the model; False where the server says that it does not load.

        Raises:
            ServerGone: the server does not answer.
        """
        try:
            self._server.unload(model)
            self._wait_until_gone(pid, model)
            self._load = Load(before=frozenset(children(pid)))
            self._server.load(model)
        except LoadError as error:
            self._say(f"it could not be loaded anew. {error}")
            return False
        finally:
            self._load = None
        return True

    def _end(self, pid: int, reason: str) -> None:
        """End the server: who started it starts it afresh, with all of its models."""
        if status(pid)[0] in ("", "Z"):
            return
        self._say(f"{reason}; ending the server")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _wait_until_gone(self, pid: int, model: str) -> None:
        """Return when the model's other processes have ended, which may hold what the new ones need."""
        deadline = time.monotonic() + GONE_WITHIN_S
        while living(pid).get(model) and time.monotonic() < deadline:
            time.sleep(0.05)
