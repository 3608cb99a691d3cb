"""Packed Python environments, made from requirements, each once.

In: requirements. Out: a `.tar.gz` that Triton's Python backend unpacks for a model (`EXECUTION_ENV_PATH`). It holds a
virtual environment that works wherever it is unpacked, with the Python of this machine: the embedded server's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from builder.errors import RepositoryError
from builder.model import Model
from builder.releases import Target
from builder.requirements import all_requirements, environment_path

# The backend sources this; it must find itself, as nobody knows where it will be unpacked.
ACTIVATE = """\
VIRTUAL_ENV="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export VIRTUAL_ENV PATH="$VIRTUAL_ENV/bin:$PATH"
unset PYTHONHOME PYTHONPATH
"""


def make_environments(
    models: Iterable[Model],
    exports: Path,
    say: Callable[[str], None] = lambda line: None,
    *,
    target: Target | None = None,
) -> None:
    """Make the environments of some models that are not there yet.

    Raises:
        RepositoryError: the server runs another Python, or pip cannot install what is required; with its words.
    """
    for model in models:
        if model.requirements:
            _check_python(model.name, target)
            packed = exports / environment_path(model.requirements)
            if not packed.is_file():
                say(f"{model.name}: installing {', '.join(all_requirements(model.requirements))}")
                make_environment(all_requirements(model.requirements), packed, model.name)


def _check_python(where: str, target: Target | None) -> None:
    """Return if the server's Python is of this machine's minor version; the embedded server takes this machine's."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if target is None or target.image == "embedded" or target.python in ("", here):
        return
    raise RepositoryError(
        where=where,
        found=f"its environment would be made for this machine's Python {here}; {target.name} runs {target.python}",
        expected=f"an environment for Python {target.python} is needed",
        fix="Build in a container of that release, or leave weights and environments out by --no-weights",
    )


def make_environment(requirements: Sequence[str], target: Path, where: str) -> None:
    """Install requirements into a fresh environment and pack it as `target`, all or nothing.

    Raises:
        RepositoryError: pip cannot install them.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="making-") as made:
        folder = Path(made) / "environment"
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], requirements, where)
        packages = next((folder / "lib").glob("python3.*")) / "site-packages"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
        _run([*pip, "--target", str(packages), "--ignore-installed", *requirements], requirements, where)
        (folder / "bin" / "activate").write_text(ACTIVATE, encoding="utf-8")
        packed = Path(made) / "packed.tar.gz"
        with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, arcname=path.name, filter=_anonymous)
        os.replace(packed, target)


def _run(command: Sequence[str], requirements: Sequence[str], where: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        words = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise RepositoryError(
            where=where,
            found=f"{', '.join(requirements)} cannot be installed ({words[0] if words else 'pip failed'})",
            expected="requirements that pip can install together are needed",
            fix="Correct `requirements` where the model is declared",
        )


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nobody's, at no time: equal environments are equal archives."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
