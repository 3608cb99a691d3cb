"""What must be true of this machine before the embedded server can start: each one clear line when it is not."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from embedded.errors import CannotStart

GLIBC_NEEDED = (2, 35)
SHM_NEEDED_MB = 64
SHM = Path("/dev/shm")


def check_machine() -> None:
    """Return if the embedded server can run here.

    Raises:
        CannotStart: it cannot; the message says what is missing.
    """
    check_platform(sys.platform, platform.machine(), platform.libc_ver())
    check_numpy()
    check_shared_memory(SHM)
    check_python3(Path(sys.executable))


def check_platform(system: str, machine: str, libc: tuple[str, str]) -> None:
    """Linux on x86-64 with glibc 2.35 or newer: the wheel is built for nothing else."""
    if (system, machine) != ("linux", "x86_64"):
        raise CannotStart(
            f"{system} on {machine}: the embedded server needs Linux x86_64. "
            "Use `tritonkit serve --gpu`, which needs docker."
        )
    name, version = libc
    if name != "glibc" or tuple(map(int, version.split(".")[:2])) < GLIBC_NEEDED:
        raise CannotStart(
            f"{name or 'C library'} {version}: the embedded server needs glibc 2.35 or newer "
            "(Debian 12, Ubuntu 22.04, Fedora 35 or later). Use `tritonkit serve --gpu`, which needs docker."
        )


def check_numpy() -> None:
    """numpy below 2: with a newer one a string tensor kills the process of a Python model."""
    try:
        version = importlib.metadata.version("numpy")
    except importlib.metadata.PackageNotFoundError:
        raise CannotStart("numpy is not installed. Install it with: pip install 'tritonkit[server]'") from None
    if int(version.split(".")[0]) >= 2:
        raise CannotStart(
            f"numpy {version}: Python models of the embedded server need numpy below 2. "
            "Install it with: pip install 'numpy<2'"
        )


def check_shared_memory(folder: Path) -> None:
    """Enough of /dev/shm: tensors go to Python models and back through it."""
    if not folder.is_dir():
        raise CannotStart(f"{folder} is missing: Python models get their tensors through it. Mount a tmpfs there.")
    free_mb = shutil.disk_usage(folder).free // 2**20
    if free_mb < SHM_NEEDED_MB:
        raise CannotStart(
            f"{folder} has {free_mb} MB free; at least {SHM_NEEDED_MB} MB are needed, 1 GB is better. "
            "Remove what fills it, or in docker start the container with --shm-size=1g."
        )


def check_python3(executable: Path) -> None:
    """`python3` beside this interpreter, and the same one: the stub finds its packages through it."""
    python3 = executable.parent / "python3"
    if not python3.exists() or python3.resolve() != executable.resolve():
        raise CannotStart(
            f"{python3} is not {executable}: Python models would get the packages of another Python. "
            "Run tritonkit from a virtual environment."
        )


def check_repository(repository: Path, names: Sequence[str]) -> None:
    """A folder with these models in it."""
    if not repository.is_dir():
        raise CannotStart(f"{repository}: no such folder. Build it with `tritonkit build`, or name another one.")
    models = sorted(entry.name for entry in repository.iterdir() if entry.is_dir())
    if not models:
        raise CannotStart(f"{repository}: holds no model folder. Build it with `tritonkit build`, or name another one.")
    unknown = [name for name in names if name not in models]
    if unknown:
        raise CannotStart(f"{', '.join(unknown)}: not in {repository}, which holds: {', '.join(models)}.")
