"""What a repository folder shall contain: every path with where its content comes from.

In: a plan, its rendered texts, where exports lie. Out: `{path: Content}`; files are looked at, nothing is written.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from builder.errors import RepositoryError
from builder.model import Artifact, Model, Tree
from builder.plan import Plan

LARGE_BYTES = 1 << 20
_SKIPPED = ("__pycache__", ".git", ".ipynb_checkpoints", ".DS_Store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of one file: a generated "text", a "copy" of a file, or a "link" to a large one.

    Attributes:
        model: the model whose folder it is in.
        text: for a text, its bytes.
        source: for the others, the file.
    """

    kind: Literal["text", "copy", "link"]
    model: str
    text: bytes = b""
    source: Path = Path()


def contents(plan: Plan, texts: Mapping[str, str], out: Path, exports: Path, *, weights: bool) -> dict[str, Content]:
    """Every file that the repository `out` shall have, by its path in it.

    Args:
        exports: the folder in which relative sources of artifacts lie.
        weights: whether artifacts belong to it, or only what is kept in version control.

    Raises:
        RepositoryError: a source is missing, or a path leads out of the repository.
    """
    result = {path: Content(kind="text", model=path.split("/")[0], text=text.encode()) for path, text in texts.items()}
    for model in plan.models:
        links = dict(_artifacts(model, exports)) if weights else {}
        targets = {*texts, *links, *_promised(model, exports)}
        for tree in model.trees:
            for path, source in _tree(model, tree, out):
                if path not in targets and not _generated_config(model, path):
                    kind: Literal["copy", "link"] = "link" if source.stat().st_size >= LARGE_BYTES else "copy"
                    if kind == "copy" or weights:
                        result[path] = Content(kind=kind, model=model.name, source=source)
        result |= {path: Content(kind="link", model=model.name, source=source) for path, source in links.items()}
    for path in result:
        _check_inside(path, out)
    return dict(sorted(result.items()))


def _generated_config(model: Model, path: str) -> bool:
    return not model.verbatim and (
        path == f"{model.name}/config.pbtxt" or fnmatch.fnmatch(path, f"{model.name}/configs/*.pbtxt")
    )


def _tree(model: Model, tree: Tree, out: Path) -> Iterator[tuple[str, Path]]:
    base = PurePosixPath(model.name, tree.target)
    if not tree.source.is_dir():
        raise RepositoryError(
            where=model.name,
            found=f"there is no folder {tree.source}",
            expected="the folder with the code it serves is needed",
            fix="Restore the folder, or correct `code` where the model is declared",
        )
    if (out / base).exists() and (out / base).samefile(tree.source):
        return
    for source in _files(tree.source):
        yield str(base / source.relative_to(tree.source).as_posix()), source


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _SKIPPED:
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _artifacts(model: Model, exports: Path) -> Iterator[tuple[str, Path]]:
    base = PurePosixPath(model.name, str(model.version))
    for artifact in model.artifacts:
        found = dict(_matches(artifact, exports))
        if not found and artifact.needed:
            raise RepositoryError(
                where=model.name,
                found=f"there is no {exports / artifact.source}",
                expected="the files that are made from a checkpoint are needed to serve it",
                fix="Run `tritonkit weights` first, or build without them by --no-weights",
            )
        for target, source in found.items():
            yield str(base / target), source


def _matches(artifact: Artifact, exports: Path) -> Iterator[tuple[str, Path]]:
    """Files of an artifact by their place in the version folder."""
    source = exports / artifact.source
    if "*" in source.name:
        for path in _files(source.parent) if source.parent.is_dir() else ():
            name = path.relative_to(source.parent).as_posix()
            excluded = any(fnmatch.fnmatch(name, pattern) for pattern in artifact.exclude)
            if fnmatch.fnmatch(name, source.name) and not excluded:
                yield str(PurePosixPath(artifact.target, name)), path
    elif source.is_dir():
        for path in _files(source):
            yield str(PurePosixPath(artifact.target, path.relative_to(source).as_posix())), path
    elif source.is_file():
        yield artifact.target, source


def _promised(model: Model, exports: Path) -> set[str]:
    """Paths that artifacts would take if they were asked for; code folders that were served from have them inside."""
    base = PurePosixPath(model.name, str(model.version))
    return {str(base / target) for artifact in model.artifacts for target, _ in _matches(artifact, exports)} | {
        str(base / artifact.target) for artifact in model.artifacts if "*" not in artifact.source.name
    }


def _check_inside(path: str, out: Path) -> None:
    parts = PurePosixPath(path).parts
    parent = (out / path).parent
    while not parent.exists():
        parent = parent.parent
    outside = out.exists() and not parent.resolve().is_relative_to(out.resolve())
    if ".." in parts or PurePosixPath(path).is_absolute() or outside:
        raise RepositoryError(
            where=str(out),
            found=f"{path} leads out of the repository",
            expected="files below the repository are needed",
            fix="Correct the path, or remove the symbolic link in the repository",
        )
