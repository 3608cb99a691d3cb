"""What is in a packed Python environment, as far as it must fit the server: Python's version, and for which machine.

In: an archive (conda-pack) or a folder. Out: an `Environment`. Only names and the first bytes of programs are looked
at, and at most `MAX_MEMBERS` of them; nothing is unpacked.
"""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

MAX_MEMBERS = 200_000
_LIBRARY = re.compile(r"(?:\./)?lib/python(\d+\.\d+)/(?:site-packages/([^/]+))?")
_PROGRAM = re.compile(r"(?:\./)?bin/python(\d+\.\d+)?$")
_ELF_MACHINES = {0x3E: "x86-64", 0xB7: "aarch64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A packed environment.

    Attributes:
        python: `3.10`, from its library folder; empty where there is none.
        machine: `x86-64`, `aarch64`, `macOS`... of its python; empty where it could not be told.
        packages: top-level names in its site-packages.
        problem: why it could not be read.
    """

    python: str = ""
    machine: str = ""
    packages: frozenset[str] = frozenset()
    problem: str = ""


def read_environment(path: Path) -> Environment:
    """What the archive or folder holds."""
    try:
        return _folder(path) if path.is_dir() else _archive(path)
    except (OSError, tarfile.TarError, EOFError, ValueError) as error:
        return Environment(problem=f"it cannot be read as a packed environment ({error or type(error).__name__})")


def _archive(path: Path) -> Environment:
    python, machine, packages = "", "", set()
    with tarfile.open(path) as archive:
        for count, member in enumerate(archive):
            if count >= MAX_MEMBERS:
                break
            if found := _LIBRARY.match(member.name):
                python = python or found[1]
                if found[2]:
                    packages.add(found[2].removesuffix(".py"))
            elif _PROGRAM.match(member.name) and member.isfile():
                head = archive.extractfile(member)
                machine = machine or (_machine(head.read(20)) if head is not None else "")
    return Environment(python=python, machine=machine, packages=frozenset(packages))


def _folder(path: Path) -> Environment:
    libraries = sorted((path / "lib").glob("python3.*"))
    python = libraries[0].name.removeprefix("python") if libraries else ""
    packages = (
        {one.name.removesuffix(".py") for one in (libraries[0] / "site-packages").glob("*")} if libraries else set()
    )
    program = path / "bin" / "python"
    machine = ""
    if program.is_file():
        with program.open("rb") as file:
            machine = _machine(file.read(20))
    return Environment(python=python, machine=machine, packages=frozenset(packages))


def _machine(head: bytes) -> str:
    if head.startswith(b"\x7fELF") and len(head) >= 20:
        return _ELF_MACHINES.get(int.from_bytes(head[18:20], "little"), "another processor")
    if head[:4] in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xce\xfa\xed\xfe"):
        return "macOS"
    return "Windows" if head.startswith(b"MZ") else ""
