"""The processes of a server's Python models.

In: the server's process. A model's process is a child of it, with the model's path among its arguments; when it dies,
the server leaves it there as a zombie.
"""

from __future__ import annotations

import os
from pathlib import Path


def living(server: int) -> dict[str, int]:
    """How many living processes each Python model has."""
    found: dict[str, int] = {}
    for pid in {*children(server), *children(server)}:
        model = model_of(pid)
        if model and status(pid)[0] not in ("Z", "X", ""):
            found[model] = found.get(model, 0) + 1
    return found


def children(parent: int) -> list[int]:
    """The processes that `parent` started, from all of its threads.

    One may be missing now and then: when the thread that started it ends, it goes over to another, which may have been
    read already.
    """
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
    """The model that a stub process runs, from its arguments (the path of its file); "" for others and for zombies."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    is_stub = len(arguments) > 8 and arguments[0].endswith(b"triton_python_backend_stub")
    return Path(os.fsdecode(arguments[1])).parent.parent.name if is_stub else ""
