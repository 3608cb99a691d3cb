"""The repository folder: what would change in it, and changing it.

In: a checked plan and a folder. Out: the folder with exactly what the plan's pipelines need, everything or nothing.
Files that tritonkit did not write are never touched; what it wrote for other pipelines stays, unless told otherwise.
"""

from __future__ import annotations

import filecmp
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from builder.contents import Content, contents
from builder.errors import RepositoryError
from builder.manifest import WEIGHTS, Manifest, read_manifest, sha256
from builder.plan import Plan
from builder.render import HEADER, render_plan
from builder.transaction import Change, apply_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One file that is not as it should be.

    Attributes:
        kind: "missing", "different", "stale" (of no pipeline any more), or "foreign" (in the way, and not ours).
        content: what it should be; None for a stale one.
        reason: for a foreign one, why it is not touched.
    """

    kind: Literal["missing", "different", "stale", "foreign"]
    path: str
    content: Content | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A repository folder beside what it should be."""

    differences: tuple[Difference, ...]
    wanted: Mapping[str, Content]
    manifest: Manifest
    kept_pipelines: Mapping[str, tuple[str, ...]]


def write_repository(
    plan: Plan, out: Path, *, exports: Path, weights: bool = True, only: bool = False, force: bool = False
) -> tuple[Difference, ...]:
    """What was changed in `out`, so that it holds the plan's pipelines. Unchanged files are left untouched.

    Args:
        exports: the folder in which exports lie.
        weights: whether to link the files that are made from checkpoints.
        only: whether to remove what belongs to other pipelines of earlier builds.
        force: whether to overwrite copied files that were edited in `out`.

    Raises:
        RepositoryError: something is missing or in the way; nothing was changed.
    """
    state = compare_repository(plan, out, exports=exports, weights=weights, only=only)
    _refuse_foreign(out, state, force)
    _refuse_shared(state)
    changes = [_change(difference) for difference in state.differences]
    try:
        apply_changes(out, [*changes, *_records(plan, out, state, weights)])
    except OSError as error:
        raise RepositoryError(
            where=str(out),
            found=f"it cannot be written ({error})",
            expected="a folder in which files can be made and renamed is needed",
            fix="Make room or give access; the folder is as it was",
        ) from error
    return state.differences


def compare_repository(plan: Plan, out: Path, *, exports: Path, weights: bool, only: bool = False) -> State:
    """How `out` differs from what the plan's pipelines need."""
    manifest = read_manifest(out)
    wanted = contents(plan, render_plan(plan), out, exports, weights=weights)
    kept = {} if only else {name: of for name, of in manifest.pipelines.items() if name not in plan.pipelines}
    differences = [
        difference
        for path, content in wanted.items()
        if (difference := _difference(out / path, path, content, manifest)) is not None
    ]
    models = {name for of in (*kept.values(), *plan.pipelines.values()) for name in of}
    for path in sorted({*manifest.files, *manifest.links} - wanted.keys()):
        planned = any(path.split("/")[0] in of for of in plan.pipelines.values())
        of_this_build = path in manifest.files or weights
        gone = path.split("/")[0] not in models or (planned and of_this_build)
        if gone and (out / path).exists():
            differences.append(Difference(kind="stale", path=path))
    return State(differences=tuple(differences), wanted=wanted, manifest=manifest, kept_pipelines=kept)


def _difference(place: Path, path: str, content: Content, manifest: Manifest) -> Difference | None:
    if not place.exists() and not place.is_symlink():
        return Difference(kind="missing", path=path, content=content)
    if _is_same(place, content):
        return None
    reason = _foreign(place, path, content, manifest)
    if reason is not None:
        return Difference(kind="foreign", path=path, content=content, reason=reason)
    return Difference(kind="different", path=path, content=content)


def _is_same(place: Path, content: Content) -> bool:
    if not place.is_file():
        return False
    if content.kind == "text":
        return place.read_bytes() == content.text
    if content.kind == "link" and _stamp(place) == _stamp(content.source):
        return True
    return filecmp.cmp(place, content.source, shallow=False)


def _stamp(path: Path) -> tuple[int, int]:
    """Size and mtime: a link has its source's, and so has the copy that takes its place across file systems."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _foreign(place: Path, path: str, content: Content, manifest: Manifest) -> str | None:
    """Why the file that is there is not tritonkit's to overwrite; None when it is."""
    if not place.is_file() or place.is_symlink():
        return "it is a folder or a link to elsewhere"
    if content.kind == "link":
        mine = manifest.links.get(path) == _stamp(place)
        return None if mine else "tritonkit did not put it there"
    if content.kind == "text" and place.suffix == ".pbtxt":
        first = place.read_bytes().split(b"\n", 1)[0]
        return None if first == HEADER.encode() else "tritonkit did not write it: its first line is not there"
    if path not in manifest.files:
        return "tritonkit did not put it there"
    return None if sha256(place.read_bytes()) == manifest.files[path] else "it was edited since tritonkit put it there"


def _refuse_foreign(out: Path, state: State, force: bool) -> None:
    foreign = [one for one in state.differences if one.kind == "foreign"]
    kept = [one for one in foreign if not (force and "edited" in one.reason)]
    if kept:
        raise RepositoryError(
            where=str(out),
            found="; ".join(f"{one.path} is in the way: {one.reason}" for one in kept),
            expected="only files that tritonkit wrote are overwritten",
            fix="Move the file, or what it says, elsewhere; or build to another folder (--force for edited copies)",
        )


def _refuse_shared(state: State) -> None:
    """A model of pipelines that are not being built now must stay what they were built with."""
    for path, content in state.wanted.items():
        others = [name for name, of in state.kept_pipelines.items() if content.model in of]
        if others and any(one.path == path for one in state.differences) and path in state.manifest.files:
            raise RepositoryError(
                where=path,
                found=f"{content.model} would change, and {', '.join(others)} in this folder uses it too",
                expected="pipelines that share a model are built together when it changes",
                fix=f"Name {', '.join(others)} as well, build to another folder, or drop the others by --only",
            )


def _change(difference: Difference) -> Change:
    content = difference.content
    if content is None:
        return Change(kind="remove", path=difference.path)
    return Change(kind=content.kind, path=difference.path, text=content.text, source=content.source)


def _records(plan: Plan, out: Path, state: State, weights: bool) -> tuple[Change, ...]:
    """Changes of the two records of what is tritonkit's own."""
    manifest = _next_manifest(plan, out, state, weights)
    texts = manifest.texts()
    changes = [
        Change(kind="text", path=path, text=text.encode())
        for path, text in texts.items()
        if not (out / path).is_file() or (out / path).read_bytes() != text.encode()
    ]
    if WEIGHTS not in texts and (out / WEIGHTS).exists():
        changes.append(Change(kind="remove", path=WEIGHTS))
    return tuple(changes)


def _next_manifest(plan: Plan, out: Path, state: State, weights: bool) -> Manifest:
    stale = {one.path for one in state.differences if one.kind == "stale"}
    kept = {name for of in state.kept_pipelines.values() for name in of}
    files = {path: digest for path, digest in state.manifest.files.items() if path.split("/")[0] in kept}
    links = {path: stamp for path, stamp in state.manifest.links.items() if path not in stale and (out / path).exists()}
    changed = {one.path for one in state.differences}
    for path, content in state.wanted.items():
        if content.kind == "link":
            place = content.source if path in changed else out / path
            links[path] = _stamp(place)
        else:
            files[path] = sha256(content.text if content.kind == "text" else content.source.read_bytes())
    return Manifest(pipelines={**state.kept_pipelines, **plan.pipelines}, files=files, links=links)
