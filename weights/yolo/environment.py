"""Ultralytics in an environment of its own.

Ultralytics wants torchvision, and an installed torchvision that does not fit torch breaks `import transformers`:
so both live in a virtual environment apart, laid over this one, from which it borrows torch, numpy and onnx.
Made on demand, kept in the cache, made anew when the pins or this interpreter change.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import platform
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

from weights.errors import ExportError
from weights.fetch import Say

PACKAGES = ("ultralytics==8.4.190", "torchvision==0.28.0", "opencv-python-headless==4.10.0.84")
NAME = ".venv-ultralytics"
STAMP = "made-of.json"


def ultralytics_environment(cache: Path, say: Say) -> Path:
    """The Python of the environment, made now or reused.

    Raises:
        ExportError: torch is missing here, or pip could not install the packages.
    """
    folder = cache / NAME
    python = folder / "bin" / "python"
    made_of: dict[str, object] = {"packages": list(PACKAGES), "python": platform.python_version(), "over": _borrowed()}
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_made_of(folder, made_of):
            say("Ultralytics environment: reused")
            return python
        say(f"Ultralytics environment: installing {', '.join(PACKAGES)} (about 60 MB; AGPL-3.0 applies to ultralytics)")
        started = time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        _make(folder, python, made_of)
        say(f"Ultralytics environment: ready after {time.monotonic() - started:.0f} s")
    return python


def _borrowed() -> list[str]:
    """The folder from which torch is imported here."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        raise ExportError(
            "Ultralytics environment: torch is not installed. Checkpoints need it; pip install tritonkit[export]."
        )
    return [str(Path(torch.origin).parent.parent)]


def _is_made_of(folder: Path, made_of: dict[str, object]) -> bool:
    try:
        return json.loads((folder / STAMP).read_text()) == made_of
    except (OSError, ValueError):
        return False


def _make(folder: Path, python: Path, made_of: dict[str, object]) -> None:
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "borrowed.pth").write_text("".join(f"{path}\n" for path in _borrowed()))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--no-deps", *PACKAGES], capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise ExportError(
            f"Ultralytics environment: pip could not install {', '.join(PACKAGES)} ({lines[-1].strip()}). "
            "A package index is needed once."
        )
    (folder / STAMP).write_text(json.dumps(made_of))
