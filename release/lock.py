"""The hashes of every version of the models that were released: `.tritonkit-releases.json` in the repository.

Written before a version folder appears under its number, by one rename: a version that is there is always in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from release.errors import FolderError

LOCK = ".tritonkit-releases.json"
Hashes = dict[str, str]


def hashes_of(folder: Path) -> Hashes:
    """SHA-256 of each file of a version, by its path in it; byte code that Python leaves there doesn't count."""
    files = sorted(one for one in folder.rglob("*") if one.is_file() and "__pycache__" not in one.parts)
    return {one.relative_to(folder).as_posix(): sha256(one) for one in files}


def sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def record(repository: Path, model: str, version: int, hashes: Hashes) -> None:
    """Notes the hashes of a version, before it appears."""
    lock = read(repository)
    lock.setdefault(model, {})[str(version)] = hashes
    handle, name = tempfile.mkstemp(prefix=LOCK, dir=repository)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(lock, file, indent=1, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, repository / LOCK)
    except BaseException:
        os.unlink(name)
        raise


def read(repository: Path) -> dict[str, dict[str, Hashes]]:
    """Model -> version -> file -> hash."""
    place = repository / LOCK
    try:
        found: Any = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
        return {str(model): dict(of) for model, of in found.items()}
    except (ValueError, AttributeError, TypeError) as error:
        found_words = f"can't be read ({error})"
        raise FolderError(str(place), found_words, "", "Restore it, or remove it and record anew.") from error


def changed_files(folder: Path, hashes: Hashes) -> list[str]:
    """Files of a version that are not as they were recorded, with how they differ."""
    now = hashes_of(folder)
    names = sorted(set(now) | set(hashes))
    words = {(True, False): "is new", (False, True): "is missing", (True, True): "was changed"}
    return [f"{one} {words[(one in now, one in hashes)]}" for one in names if now.get(one) != hashes.get(one)]
