"""The backend folder of the embedded server: the wheel's python backend with this Python's stub, and our onnxruntime.

The folder is named after its content, so a changed wheel or backend makes a new one and nothing is rebuilt twice.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from embedded.wheel import Wheel

OWN_BACKENDS = Path(__file__).parent / "backends"


def assemble_backends(wheel: Wheel, cache: Path) -> Path:
    """The folder for `--backend-directory`, made in `cache` if it is not there yet."""
    files = backend_files(wheel)
    folder = cache / "backends" / fingerprint(files)
    if not folder.is_dir():
        copy_at_once(files, folder)
    return folder


def backend_files(wheel: Wheel) -> dict[str, Path]:
    """Path in the backend folder -> the file to copy there."""
    files = {f"python/{path.name}": path for path in sorted(wheel.python_backend.iterdir()) if path.is_file()}
    files[f"python/{wheel.stub.name}"] = wheel.stub
    for path in sorted(OWN_BACKENDS.rglob("*.py")):
        files[path.relative_to(OWN_BACKENDS).as_posix()] = path
    return files


def fingerprint(files: dict[str, Path]) -> str:
    """16 hex digits that change whenever a name or a content does."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return digest.hexdigest()[:16]


def copy_at_once(files: dict[str, Path], folder: Path) -> None:
    """Copy beside `folder`, then rename: the folder is never there half."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
        whole = Path(making, "whole")
        for name, path in files.items():
            target = whole / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        try:
            os.rename(whole, folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process made the same folder meanwhile
                raise
