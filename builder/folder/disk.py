"""Reading below one folder and nowhere else: no link that leads out, no device, nothing endless.

Every function takes the resolved root and a path below it, and says `None` and a reason rather than raise.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

MAX_NAMES = 20_000


def is_inside(path: Path, root: Path) -> bool:
    """Whether `path`, with every link followed, lies below `root`."""
    try:
        return os.path.realpath(path, strict=True).startswith(f"{root}{os.sep}")
    except (OSError, ValueError):
        return False


def read_file(path: Path, root: Path, limit: int) -> tuple[bytes | None, str]:
    """The content of a regular file, or None and why it was not read. Reads at most one byte more than `limit`."""
    if not is_inside(path, root):
        exists = os.path.lexists(path)
        return None, "a link that leads out of the repository or nowhere" if exists else "there is no such file"
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return None, error.strerror or "it cannot be opened"
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None, "not a file"
        try:
            return file.read(limit + 1), ""
        except OSError as error:
            return None, error.strerror or "it cannot be read"


def list_folder(path: Path) -> tuple[tuple[os.DirEntry[str], ...], str]:
    """What lies directly in a folder, by name, and why it was not read where it was not."""
    try:
        with os.scandir(path) as entries:
            found = []
            for entry in entries:
                found.append(entry)
                if len(found) >= MAX_NAMES:
                    return tuple(found), f"more than {MAX_NAMES} names; the rest was left out"
        return tuple(sorted(found, key=lambda entry: entry.name)), ""
    except OSError as error:
        return (), error.strerror or "it cannot be read"


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def file_size(path: Path) -> int | None:
    """Bytes of a regular file; None for anything else."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
