"""Which Python models of a server have lost a process. Triton starts that of a decoupled model never again.

In: the server's process. Out: names. A model's process is a child of the server, with the model's path among its
arguments; when it dies, the server leaves it there as a zombie.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_STUB = "triton_python_backend_stub"


def living(server: int) -> dict[str, int]:
    """How many living processes each Python model has."""
    found: dict[str, int] = {}
    for pid in _children(server):
        model = _model_of(pid)
        if model and _state(pid) not in ("Z", "X", ""):
            found[model] = found.get(model, 0) + 1
    return found


def lost(server: int, models: Iterable[str], before: dict[str, int]) -> tuple[str, ...]:
    """Those of `models` that have fewer processes than `before`."""
    now = living(server)
    return tuple(name for name in models if now.get(name, 0) < before.get(name, 0))


def _children(parent: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        try:
            found += [int(pid) for pid in task.read_text().split()]
        except OSError:
            continue
    return found


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _model_of(pid: int) -> str:
    """The model's name: its folder, two above model.py; empty for another process, and for a zombie."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    if not words[0].endswith(_STUB) or len(words) < 2:
        return ""
    return Path(words[1]).parent.parent.name
