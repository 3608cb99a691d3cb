"""The environment of the server process and of the Python models below it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from embedded.wheel import Wheel

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# What holds unless the caller's environment says otherwise; docs/performance.md tells what it saves.
# Tensors are megabytes, made and freed for each request. The C library gives such memory back to the kernel each time
# and takes it anew, page by page; with these (bytes) it keeps some. And numpy's matrix products here are too small for
# threads: those of OpenBLAS wait for each other by asking the kernel again and again while other models compute.
DEFAULTS = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
    "OPENBLAS_NUM_THREADS": "1",
}


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
        **DEFAULTS,
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
