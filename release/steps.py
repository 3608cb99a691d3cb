"""The steps of a release. Each leaves the repository whole, and either done or as it was."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from release import folders, lock
from release.compare import Asks, Comparison, compare
from release.errors import DifferentError, FolderError, LoadError
from release.server import Manager


def stage(repository: Path, model: str, source: Path, manager: Manager) -> str:
    """Puts a new version beside the old one and loads it; the name under which it answers.

    Raises:
        LoadError: it doesn't load; it is gone again.
    """
    folder = folders.model_folder(repository, model)
    active = folders.active_version(folder)
    if str(active) not in lock.read(repository).get(model, {}):
        lock.record(repository, model, active, lock.hashes_of(folder / str(active)))
    candidate = folders.place_candidate(folder, source)
    try:
        manager.load(candidate.name)
    except LoadError:
        with suppress(LoadError):
            manager.unload(candidate.name)
        folders.drop_candidate(folder)
        raise
    return candidate.name


def shadow(repository: Path, model: str, recordings: list[Path], tolerance: float, client: Asks) -> Comparison:
    """The old version and the new one on the same recorded inputs.

    Raises:
        DifferentError: they answer differently.
    """
    candidate = folders.candidate_folder(folders.model_folder(repository, model))
    if not candidate.is_dir():
        raise FolderError(str(candidate), "no candidate", "one is needed", "Stage one first.")
    found = compare(client, model, candidate.name, recordings, tolerance)
    if found.differences:
        listed = "".join(f"\n  {one}" for one in found.differences)
        raise DifferentError(candidate.name, f"it answers otherwise than {model}:{listed}")
    return found


def switch(repository: Path, model: str, manager: Manager) -> int:
    """Makes the candidate the version that answers; its number. Requests in flight end on the old one.

    Raises:
        LoadError: it doesn't load; the old one answers, and it is the candidate again.
    """
    folder = folders.model_folder(repository, model)
    candidate = folders.candidate_folder(folder)
    number = folders.active_version(folder) + 1
    if not (candidate / "1").is_dir():
        raise FolderError(str(candidate), "no candidate", "one is needed", "Stage one first.")
    manager.unload(candidate.name)
    lock.record(repository, model, number, lock.hashes_of(candidate / "1"))
    folders.promote(folder)
    try:
        manager.load(model)
        manager.wait_for_version(model, number)
    except LoadError:
        folders.demote(folder, number)
        manager.load(model)
        raise
    return number


def rollback(repository: Path, model: str, manager: Manager) -> tuple[int, int]:
    """Makes the version before the last the one that answers; (the number taken back, the one that answers).

    Raises:
        FolderError: there is no older one, or it isn't as it was recorded.
    """
    folder = folders.model_folder(repository, model)
    found = folders.versions(folder)
    if len(found) > 1:
        check_version(repository, model, found[-2])
    taken, active = folders.withdraw(folder)
    try:
        manager.load(model)
        manager.wait_for_version(model, active)
    except LoadError:
        folders.put_back(folder, taken)
        manager.load(model)
        raise
    return taken, active


def drop(repository: Path, model: str, manager: Manager) -> None:
    """Forgets the candidate."""
    folder = folders.model_folder(repository, model)
    candidate = folders.candidate_folder(folder)
    if candidate.exists():
        manager.unload(candidate.name)
        folders.drop_candidate(folder)


def check_version(repository: Path, model: str, version: int) -> None:
    """Raises FolderError if a recorded version isn't as it was recorded."""
    recorded = lock.read(repository).get(model, {}).get(str(version))
    changed = lock.changed_files(repository / model / str(version), recorded) if recorded else []
    if changed:
        where = f"{model}, version {version}"
        raise FolderError(where, ", ".join(changed), f"the files in {lock.LOCK} are needed", "Restore them.")
