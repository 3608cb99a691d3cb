"""Changes to a folder, all of them or none.

In: changes. Out: the folder changed; or an exception, and the folder as it was, times included.
New content is staged in a folder beside it first, so that a full disk is met before anything is touched; then each
file is renamed into place, the old one kept until the last change is through.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one file: its new "text", a "copy" of another file, a "link" to one, or "remove".

    Attributes:
        path: below the folder.
        text, source: the new content, for the first and the next two.
    """

    kind: Literal["text", "copy", "link", "remove"]
    path: str
    text: bytes = b""
    source: Path = Path()


def apply_changes(folder: Path, changes: Sequence[Change]) -> None:
    """Changes `folder` as asked, or leaves it as it was.

    Raises:
        OSError: a change is impossible; the folder is as it was.
    """
    if not changes:
        return
    undo: list[Callable[[], None]] = []
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=_staging_place(folder)) as staging:
        new, old = Path(staging) / "new", Path(staging) / "old"
        new.mkdir()
        old.mkdir()
        for index, change in enumerate(changes):
            _stage(change, new / str(index))
        try:
            for index, change in enumerate(changes):
                _make_folders((folder / change.path).parent, undo)
                _replace(folder / change.path, new / str(index), old / str(index), undo)
            _remove_empty_folders(folder, changes, undo)
        except BaseException:
            for step in reversed(undo):
                step()
            raise


def _staging_place(folder: Path) -> Path:
    """Beside the folder, unless it is a mount: renaming works only inside one file system."""
    mounted = folder.exists() and folder.stat().st_dev != folder.parent.stat().st_dev
    return folder if mounted else folder.parent


def _stage(change: Change, place: Path) -> None:
    if change.kind == "text":
        place.write_bytes(change.text)
    elif change.kind == "copy":
        shutil.copy(change.source, place)
    elif change.kind == "link":
        source = change.source.resolve()
        try:
            os.link(source, place)
        except OSError:
            shutil.copy2(source, place)


def _make_folders(folder: Path, undo: list[Callable[[], None]]) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir()
        undo.append(one.rmdir)


def _replace(place: Path, new: Path, old: Path, undo: list[Callable[[], None]]) -> None:
    if os.path.lexists(place):
        place.rename(old)
        undo.append(lambda: _put_back(old, place))
    if new.exists():
        new.rename(place)
        undo.append(place.unlink)


def _put_back(old: Path, place: Path) -> None:
    old.replace(place)


def _remove_empty_folders(folder: Path, changes: Sequence[Change], undo: list[Callable[[], None]]) -> None:
    """Folders that a removal left empty, or with bytecode only: Triton would take them for models."""
    for change in changes:
        if change.kind != "remove":
            continue
        for parent in (folder / change.path).parents:
            if parent == folder or not parent.is_dir():
                break
            with suppress(OSError):
                if [one.name for one in parent.iterdir()] == ["__pycache__"]:
                    shutil.rmtree(parent / "__pycache__")
            if any(parent.iterdir()):
                break
            parent.rmdir()
            undo.append(parent.mkdir)
