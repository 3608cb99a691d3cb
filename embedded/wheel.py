"""The installed nvidia-pytriton wheel, used as a box of binaries: tritonserver, python backend, stubs, libraries."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import CannotStart


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """Where the parts of the wheel lie."""

    tritonserver: Path
    python_backend: Path
    stub: Path
    caches: Path
    library_folders: tuple[Path, ...]


def find_wheel() -> Wheel:
    """The parts of the wheel that fit this interpreter.

    Raises:
        CannotStart: the wheel is not installed, or has no stub for this Python.
    """
    # find_spec does not import the package: its import is slow and has side effects.
    spec = importlib.util.find_spec("pytriton")
    if spec is None or spec.origin is None:
        raise CannotStart(
            "the embedded server is not installed: package nvidia-pytriton is missing. "
            "Install it with: pip install 'tritonkit[server]'"
        )
    package = Path(spec.origin).parent
    server = package / "tritonserver"
    return Wheel(
        tritonserver=server / "bin" / "tritonserver",
        python_backend=server / "backends" / "python",
        stub=find_stub(server / "python_backend_stubs"),
        caches=server / "caches",
        library_folders=(Path(str(sysconfig.get_config_var("LIBDIR"))), package.parent / "nvidia_pytriton.libs"),
    )


def find_stub(stubs: Path) -> Path:
    """The program that runs Python models for this interpreter's minor version.

    Raises:
        CannotStart: the wheel has none for it.
    """
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = stubs / minor / "triton_python_backend_stub"
    if stub.is_file():
        return stub
    known = ", ".join(sorted((folder.name for folder in stubs.glob("3.*")), key=lambda name: int(name.split(".")[1])))
    raise CannotStart(f"Python {minor}: the embedded server runs Python models with {known}. Use one of these.")
