"""The environment of the server process and of the Python models below it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from embedded.wheel import Wheel

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def server_environment(
    base: Mapping[str, str], *, wheel: Wheel, python: Path, cpu_threads: int | None = None
) -> dict[str, str]:
    """`base` with what the server needs.

    The order in LD_LIBRARY_PATH matters: without the interpreter's own library folder in front, the stub links the
    system's libpython of another patch level and C extensions fail on undefined symbols. The stub finds packages
    through the first `python3` on PATH.
    """
    threads = dict.fromkeys(THREAD_VARIABLES, str(cpu_threads)) if cpu_threads is not None else {}
    return {
        **base,
        "LD_LIBRARY_PATH": join_paths(*map(str, wheel.library_folders), base.get("LD_LIBRARY_PATH", "")),
        "PATH": join_paths(str(python.parent), base.get("PATH", os.defpath)),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        **threads,
    }


def join_paths(*paths: str) -> str:
    """The non-empty ones, each once, in order."""
    return os.pathsep.join(dict.fromkeys(part for path in paths for part in path.split(os.pathsep) if part))
