"""Watches the processes of Python models while they load.

When such a process dies during its start (killed, out of memory, a crash in a C extension), the server waits for it for
ever and says nothing. Its zombie below the server process is the only sign.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from starter.stubs import children, model_of, status

# The server collects a process that ends as planned at once; a busy machine gets some time for it.
DEAD_AFTER_S = 3.0


@dataclass(slots=True)
class StubWatch:
    """Remembers which process belongs to which model, and names the models whose process is dead."""

    _models: dict[int, str] = field(default_factory=dict)
    _zombie_since: dict[int, float] = field(default_factory=dict)

    def dead(self, server: int, loading: Collection[str]) -> dict[str, str]:
        """Model -> how its process ended, for processes below `server` that are dead for some seconds.

        A process that died before it was seen alive belongs to one of `loading` that has no living process.
        """
        found: dict[str, str] = {}
        alive: set[str] = set()
        now = time.monotonic()
        unknown = ""
        for pid in children(server):
            state, exit_code = status(pid)
            if state != "Z":
                # Asked again until it is known: a process just forked is not the stub yet.
                self._models[pid] = self._models.get(pid) or model_of(pid)
                alive.add(self._models[pid])
            elif now - self._zombie_since.setdefault(pid, now) > DEAD_AFTER_S:
                if model := self._models.get(pid):
                    found[model] = how_it_ended(exit_code)
                else:
                    unknown = how_it_ended(exit_code)
        suspects = [model for model in loading if model not in alive and model not in found]
        return found | (dict.fromkeys(suspects, unknown) if unknown else {})


def how_it_ended(wait_status: int) -> str:
    """A wait status in words."""
    code = os.waitstatus_to_exitcode(wait_status)
    if code >= 0:
        return f"its process ended with status {code} while it loaded"
    name = signal.Signals(-code).name
    memory = ", which the system also does when memory runs out" if name == "SIGKILL" else ""
    return f"its process was ended by signal {-code} ({name}) while it loaded{memory}"
