"""The folders of a release. Each change is made by one rename: whenever the server looks, what it sees is whole.

MODEL/1, MODEL/2            versions; the server answers with the highest (Triton's default policy)
MODEL_candidate/1           the new version while it is beside the old one, a model of its own
REPOSITORY.withdrawn/MODEL/2    what was taken back
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from release.errors import FolderError

CONFIG = "config.pbtxt"
SUFFIX = "_candidate"
NAME_LINE = re.compile(r'^name:\s*"[^"]*"\s*$', re.MULTILINE)


def model_folder(repository: Path, model: str) -> Path:
    """The folder of a model that is there.

    Raises:
        FolderError: no such model, or a name that leads elsewhere.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", model):
        raise FolderError(f"model {model!a}", "not the name of a model", "a folder of the repository is needed")
    folder = repository / model
    if not (folder / CONFIG).is_file():
        raise FolderError(str(repository), f"no model {model} with a {CONFIG}", "", "Check the name and --repository.")
    if "version_policy" in (folder / CONFIG).read_text(encoding="utf-8"):
        found = "its config has a version_policy of its own"
        raise FolderError(str(folder), found, "the default, the highest version, is needed", "Remove it.")
    return folder


def versions(folder: Path) -> list[int]:
    """The versions of a model, lowest first."""
    found = [int(one.name) for one in folder.iterdir() if one.is_dir() and one.name.isdigit() and one.name[0] != "0"]
    return sorted(found)


def active_version(folder: Path) -> int:
    """The version that answers."""
    found = versions(folder)
    if not found:
        raise FolderError(str(folder), "no version in it", "a folder such as 1 is needed")
    return found[-1]


def candidate_folder(folder: Path) -> Path:
    """Where the new version of a model lies while it is beside the old one."""
    return folder.with_name(folder.name + SUFFIX)


def place_candidate(folder: Path, source: Path) -> Path:
    """Copies a version into the repository, as a model of its own. Nothing is there, or all of it.

    Raises:
        FolderError: there is nothing to copy, or a candidate is there already.
        OSError: it can't be copied, such as on a full disk; the repository is as it was.
    """
    candidate = candidate_folder(folder)
    if candidate.exists():
        raise FolderError(str(candidate), "a candidate is there", "", "Switch to it, or drop it first.")
    if not source.is_dir() or not any(source.iterdir()):
        raise FolderError(str(source), "no folder with files in it", "the content of a version folder is needed")
    with staging(folder) as place:
        whole = Path(place) / candidate.name
        shutil.copytree(source, whole / "1", symlinks=False, ignore=shutil.ignore_patterns("__pycache__"))
        text = (folder / CONFIG).read_text(encoding="utf-8")
        (whole / CONFIG).write_text(NAME_LINE.sub(f'name: "{candidate.name}"', text), encoding="utf-8")
        for part in ("configs",):
            if (folder / part).is_dir():
                shutil.copytree(folder / part, whole / part)
                for config in (whole / part).glob("*.pbtxt"):
                    renamed = NAME_LINE.sub(f'name: "{candidate.name}"', config.read_text(encoding="utf-8"))
                    config.write_text(renamed, encoding="utf-8")
        whole.rename(candidate)
    return candidate


def promote(folder: Path) -> int:
    """Makes the candidate the highest version; its number. One rename."""
    candidate = candidate_folder(folder)
    if not (candidate / "1").is_dir():
        raise FolderError(str(candidate), "no candidate", "one is needed", "Stage one first.")
    number = active_version(folder) + 1
    (candidate / "1").rename(folder / str(number))
    shutil.rmtree(candidate)
    return number


def demote(folder: Path, number: int) -> None:
    """Makes the highest version the candidate again; undoes promote."""
    with staging(folder) as place:
        whole = Path(place) / candidate_folder(folder).name
        whole.mkdir()
        (folder / str(number)).rename(whole / "1")
        text = (folder / CONFIG).read_text(encoding="utf-8")
        (whole / CONFIG).write_text(NAME_LINE.sub(f'name: "{whole.name}"', text), encoding="utf-8")
        whole.rename(candidate_folder(folder))


def withdraw(folder: Path) -> tuple[int, int]:
    """Takes the highest version out of the repository; (its number, the one that answers then)."""
    found = versions(folder)
    if len(found) < 2:
        raise FolderError(str(folder), f"only version {found[-1]}" if found else "no version", "an older one is needed")
    place = withdrawn_folder(folder) / str(found[-1])
    if place.exists():
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    (folder / str(found[-1])).rename(place)
    return found[-1], found[-2]


def put_back(folder: Path, number: int) -> None:
    """Undoes withdraw."""
    (withdrawn_folder(folder) / str(number)).rename(folder / str(number))


def withdrawn_folder(folder: Path) -> Path:
    """Where versions of a model go that were taken back."""
    repository = folder.resolve().parent
    return repository.with_name(repository.name + ".withdrawn") / folder.name


def drop_candidate(folder: Path) -> None:
    """Removes the candidate, if there is one: out of the repository by one rename, then for good."""
    candidate = candidate_folder(folder)
    if candidate.exists():
        with staging(folder) as place:
            candidate.rename(Path(place) / candidate.name)


def staging(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder beside the repository, where the server doesn't look; renames from it stay in one file system."""
    repository = folder.resolve().parent
    return tempfile.TemporaryDirectory(prefix=f".{repository.name}.", dir=repository.parent)
