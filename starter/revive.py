"""Loads a Python model anew when its process has died. Triton 2.51 does not: every later request of it would fail.

Unloading the model makes readiness tell the truth, and lets go of the requests that the process took with it; loading
it starts a new process, and the ensembles that use it come back with it. That needs model control in explicit mode.
Used by this program in containers and by `tritonkit serve` alike.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from starter.deaths import DeadModels, end_orphans
from starter.errors import StarterError
from starter.server import Server
from starter.stubs import living

MOST_AN_HOUR = 5  # then something is wrong that a new process does not cure
GONE_WITHIN_S = 5.0


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
        self._deaths: dict[str, list[float]] = {}
        self._work: threading.Thread | None = None

    def poll(self, pid: int) -> None:
        """Look once at the server's process, and begin to load anew what has died; returns at once.

        To be called a few times a second.
        """
        if self._work is not None and self._work.is_alive():
            return
        deaths = self._dead.look(pid)
        for death in deaths:
            if left := end_orphans(death):
                self._say(f"{death.model}: ended {left} of its processes that were left behind")
        models = [death.model for death in deaths if self._may_live(death.model)]
        if models:
            self._work = threading.Thread(target=self._revive, args=(pid, models), name="reviver", daemon=True)
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

    def _revive(self, pid: int, models: list[str]) -> None:
        for model in models:
            self._say(f"{model}: its process has died; loading it anew")
            began = time.monotonic()
            try:
                self._server.unload(model)
                self._wait_until_gone(pid, model)
                self._server.load(model)
            except StarterError as error:
                self._say(f"it could not be loaded anew. {error}")
            else:
                self._say(f"{model}: ready again after {time.monotonic() - began:.1f} s")

    def _wait_until_gone(self, pid: int, model: str) -> None:
        """Return when the model's other processes have ended, which may hold what the new ones need."""
        deadline = time.monotonic() + GONE_WITHIN_S
        while living(pid).get(model) and time.monotonic() < deadline:
            time.sleep(0.05)
