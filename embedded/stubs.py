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
from pathlib import Path

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


def children(parent: int) -> list[int]:
    """The processes that `parent` started, from all of its threads."""
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        try:
            found += [int(pid) for pid in task.read_text().split()]
        except OSError:
            continue
    return found


def status(pid: int) -> tuple[str, int]:
    """State letter and wait status of a process; ("", 0) when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[-1])


def model_of(pid: int) -> str:
    """The model that a stub process runs, from its arguments (the path of the model's file); "" for other processes."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    is_stub = len(arguments) > 8 and arguments[0].endswith(b"triton_python_backend_stub")
    return Path(os.fsdecode(arguments[1])).parent.parent.name if is_stub else ""


def how_it_ended(wait_status: int) -> str:
    """A wait status in words."""
    code = os.waitstatus_to_exitcode(wait_status)
    if code >= 0:
        return f"its process ended with status {code} while it loaded"
    name = signal.Signals(-code).name
    memory = ", which the system also does when memory runs out" if name == "SIGKILL" else ""
    return f"its process was ended by signal {-code} ({name}) while it loaded{memory}"
