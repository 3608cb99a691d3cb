"""Processor time of the processes of a server on this machine: of the server itself, and of each model's own."""

from __future__ import annotations

from pathlib import Path

from starter.stubs import children, model_of


def cpu_s(pid: int) -> float:
    """Seconds that all threads of a process have run; finer than the ticks of /proc/PID/stat. 0 if it is gone."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(task.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return total / 1e9


def models_cpu_s(server: int) -> dict[str, float]:
    """By model, seconds that its processes have run, an engine's below them too; only Python models have processes."""
    found: dict[str, float] = {}
    for pid in children(server):
        model = model_of(pid)
        if model:
            found[model] = found.get(model, 0.0) + tree_cpu_s(pid)
    return found


def tree_cpu_s(pid: int) -> float:
    """Seconds that a process and all that it has started have run."""
    return cpu_s(pid) + sum(map(tree_cpu_s, children(pid)))
