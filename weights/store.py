"""Exports kept in the cache and recognised by content.

In: a name, what the export depends on, and a function that fills an empty folder.
Out: `<cache>/exports/<name>/`, whole or not there at all.
The stamp beside the files says from what they were made and what they contain; when either differs, they are made anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from weights.fetch import Say, sha256_of

STAMP = "export.json"


def export(name: str, made_from: Mapping[str, str], fill: Callable[[Path], None], cache: Path, say: Say) -> Path:
    """The folder of an export, made now or reused.

    Args:
        name: The folder's name below `<cache>/exports`.
        made_from: All that decides the content: hashes of sources, of the exporter's code, its options.
        fill: Writes every file of the export into the empty folder it is given.
        cache: The cache's root.
        say: Takes progress lines.
    """
    target = cache / "exports" / name
    if _is_intact(target, made_from):
        say(f"{name}: reused")
        return target
    say(f"{name}: exporting")
    started = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        filled = Path(scratch) / "filled"
        filled.mkdir()
        fill(filled)
        _write_stamp(filled, made_from)
        _put_in_place(filled, target, Path(scratch) / "old")
    say(f"{name}: exported in {time.monotonic() - started:.0f} s")
    return target


def hash_of_code(*paths: Path) -> str:
    """One hash over Python files and over all Python files below folders, so that a changed exporter exports anew."""
    digest = hashlib.sha256()
    for file in sorted(_python_files(paths)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _python_files(paths: Iterable[Path]) -> Iterable[Path]:
    for path in paths:
        yield from path.rglob("*.py") if path.is_dir() else [path]


def _is_intact(folder: Path, made_from: Mapping[str, str]) -> bool:
    try:
        stamp = json.loads((folder / STAMP).read_text())
        return stamp["made_from"] == dict(made_from) and all(
            sha256_of(folder / name) == digest for name, digest in stamp["files"].items()
        )
    except (OSError, ValueError, KeyError):
        return False


def _write_stamp(folder: Path, made_from: Mapping[str, str]) -> None:
    files = {str(p.relative_to(folder)): sha256_of(p) for p in sorted(folder.rglob("*")) if p.is_file()}
    (folder / STAMP).write_text(json.dumps({"made_from": dict(made_from), "files": files}, indent=1))


def _put_in_place(filled: Path, target: Path, old: Path) -> None:
    if target.exists():
        target.replace(old)
    filled.replace(target)
    shutil.rmtree(old, ignore_errors=True)
