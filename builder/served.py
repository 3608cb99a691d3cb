"""Where the served code of the shipped models lies, written by hand; and the exports of their checkpoints."""

from __future__ import annotations

from pathlib import Path

from shipped import REPOSITORY


def code_of(model: str) -> Path:
    """The version folder with the code of a shipped model."""
    return REPOSITORY / model / "1"


def export_folder(choice: str | Path, prefix: str = "") -> Path:
    """Where the export of a checkpoint lies: a folder as it is, a packaged name below the folder of exports."""
    path = Path(choice)
    return path.absolute() if path.is_dir() else Path(f"{prefix}{choice}")
