"""Rules about what lies in a model's folder: versions, model files, and the files that a config names.

Five of these mistakes end or hang a whole server (seen on 2.51), not only the model that has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.folder.values import ModelFolder
from builder.rules.backends import backend_of, model_file
from builder.tensors import did_you_mean

_ENDS = "The server ends while it loads this model, and every other model with it (seen on 2.51)"
_HANGS = "The server waits for the model's process for ever and never opens its ports (seen on 2.51)"


@rule("TK811", "error", "version folder with a number that is too large", why=_ENDS)
def overflowing_version(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A folder whose number does not fit into 64 bits."""
    for name in _folder(entry).overflowing if entry.folder else ():
        yield Problem(
            file=f"{entry.name}/{name}",
            found=f"the version folder {name} is no 64-bit number",
            expected="a number from 1 to 9223372036854775807 is needed",
            fix=f"Rename or remove {entry.name}/{name}",
        )


@rule(
    "TK812",
    "warning",
    "folder that the server passes over as a version",
    why="core: a version folder is named by a whole number without leading zeros (ENS-12)",
    server="accepts",
)
def passed_over(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A folder that looks like a version and is none, such as `v1` or `01`."""
    for version in _folder(entry).versions if entry.folder else ():
        if version.number is None and _digits(version.name) and version.files & _MODEL_FILES:
            yield Problem(
                file=f"{entry.name}/{version.name}",
                found=f"{version.name} is not taken for a version",
                expected="a whole number from 1, without leading zeros, is needed",
                fix=f"Rename it, for example to {int(_digits(version.name)[:6]) or 1}",
            )


@rule("TK813", "error", "version folder that the server takes for another number", why=_HANGS)
def other_number(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A folder such as `1a`: taken for version 1, which is then looked for in a folder that is not there."""
    if entry.folder is None or entry.is_ensemble:
        return
    found = {version.number for version in entry.folder.versions if version.is_found}
    for version in entry.folder.versions:
        if version.number in entry.loaded_versions() and version.number not in found:
            yield Problem(
                file=f"{entry.name}/{version.name}",
                found=f"the server takes {version.name} for version {version.number} and looks into {entry.name}/"
                f"{version.number}",
                expected="a folder named by the number alone is needed",
                fix=f"Rename it to {abs(version.number) if version.number else 1}",
            )


@rule("TK814", "error", "version without its model file", why="backends: each looks for one file in the version folder")
def no_model_file(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """The file that the backend will load is not in a version that the policy admits."""
    if entry.folder is None or entry.is_ensemble or entry.config.get("runtime"):
        return
    backend, name = backend_of(entry.config), model_file(entry.config)
    if name is None:
        return
    for version in entry.folder.versions:
        is_loaded = version.is_found and version.number in entry.loaded_versions()
        if is_loaded and version.is_read and name not in version.files:
            others = sorted(version.files)
            yield Problem(
                file=f"{entry.name}/{version.name}",
                path=("default_model_filename",),
                found=f"there is no {name} in {entry.name}/{version.name}{did_you_mean(name, others)}",
                expected=f"the {backend} backend loads {name}",
                fix=f"Put it there, or name the file that is meant: default_model_filename{_example(others)}",
                why=_HANGS if backend == "python" else None,
            )


@rule("TK815", "error", "config.pbtxt is a folder", why=_ENDS)
def config_is_folder(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A folder where the config should be (a mount of a file that does not exist makes one)."""
    if entry.folder is not None and entry.folder.config_is_folder:
        yield Problem(
            found=f"{entry.folder.config_file} is a folder",
            expected="a text file is needed, or nothing",
            fix="Remove the folder; docker makes one when it mounts a file that is not there",
        )


@rule(
    "TK816",
    "error",
    "folder of the repository that is no model",
    why="core: every first-level folder is a model, and one that fails ends a server with --exit-on-error (DEP-02)",
)
def stranger(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A folder with neither a config nor a model file in a version folder."""
    if is_stranger(entry):
        yield Problem(
            found="this folder holds neither a config nor a model",
            expected="every first-level folder is taken for a model",
            fix=f"Move {entry.name} out of the repository",
        )


def is_stranger(entry: Entry) -> bool:
    """Whether the folder has nothing of a model."""
    folder = entry.folder
    return (
        folder is not None
        and folder.document is None
        and not folder.config_is_folder
        and not folder.unread
        and not any(version.files & _MODEL_FILES for version in folder.versions)
    )


@rule(
    "TK817",
    "error",
    "config that could not be read",
    why="Nothing outside the repository is read, nothing larger than 4 MiB, and nothing without permission",
)
def unread_config(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """The config is there, and it was not read."""
    for one in _folder(entry).unread if entry.folder else ():
        if one.path.endswith(".pbtxt"):
            yield Problem(
                file=one.path,
                found=f"not read: {one.reason}",
                expected="a text file inside the repository, with permission to read it, is needed",
                fix="Correct the file or its permissions",
            )


@rule(
    "TK818",
    "advice",
    "part of a model that was not looked at",
    why="Nothing outside the repository is read, and nothing without permission",
    server="accepts",
)
def unread_part(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A file or folder that the rules would have asked about."""
    for one in _folder(entry).unread if entry.folder else ():
        if not one.path.endswith(".pbtxt"):
            yield Problem(
                file=one.path,
                found=f"not read: {one.reason}",
                expected="a file inside the repository, with permission to read it, would be compared with the config",
                fix="Check the repository where its files are, or let this be",
            )


@rule(
    "TK821", "error", "label file that is not there", why="core: the labels of an output are read when the model loads"
)
def label_file(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`label_filename` names a file in the model's folder."""
    if entry.folder is None:
        return
    for index, output in enumerate(entry.config.get("output", ())):
        name = output.get("label_filename", "")
        if not name:
            continue
        outside = name.startswith("/") or ".." in name.split("/")
        size = entry.folder.sizes.get(name)
        if size is None and not outside:
            yield _missing(entry, ("output", index, "label_filename"), name, output.get("name"), "output")
        elif size == -1:
            yield Problem(
                tensor=output.get("name"),
                side="output",
                path=("output", index, "label_filename"),
                found=f"{name} is a folder",
                expected="a text file with one label for each line is needed",
                fix="Name the file",
                why=_ENDS,
            )


@rule(
    "TK822",
    "error",
    "data file of a warm-up or an initial state that is not there",
    why="core: read when the model loads",
)
def data_files(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`input_data_file` lies in `<model>/warmup/`, `data_file` in `<model>/initial_state/` (DEP-09)."""
    if entry.folder is None or entry.is_ensemble:
        return
    for index, sample in enumerate(entry.config.get("model_warmup", ())):
        for tensor, one in sample.get("inputs", {}).items() if sample.get("batch_size", 0) else ():
            name = f"warmup/{one['input_data_file']}" if "input_data_file" in one else None
            if name is not None and name not in entry.folder.sizes:
                yield _missing(
                    entry, ("model_warmup", index, "inputs", tensor, "input_data_file"), name, tensor, "input"
                )
    for index, state in enumerate(entry.config.get("sequence_batching", {}).get("state", ())):
        for inner, initial in enumerate(state.get("initial_state", ())):
            name = f"initial_state/{initial['data_file']}" if "data_file" in initial else None
            if name is not None and name not in entry.folder.sizes:
                path = ("sequence_batching", "state", index, "initial_state", inner, "data_file")
                missing = _missing(entry, path, name, state.get("input_name"), "input")
                yield replace(missing, why="The server ends now and then, or refuses this model (seen on 2.51)")


def _missing(entry: Entry, path: tuple[str | int, ...], name: str, tensor: str | None, side: str) -> Problem:
    return Problem(
        tensor=tensor,
        side=side,
        path=path,
        found=f"there is no {entry.name}/{name}",
        expected="a file of that name is needed",
        fix=f"Put it there{did_you_mean(name, sorted(_folder(entry).names))}",
    )


def _digits(name: str) -> str:
    return re.sub("[^0-9]", "", name)


def _example(names: list[str]) -> str:
    return f': "{names[0]}"' if names else ""


def _folder(entry: Entry) -> ModelFolder:
    assert entry.folder is not None
    return entry.folder


_MODEL_FILES = frozenset(
    (
        "model.py",
        "model.onnx",
        "model.plan",
        "model.pt",
        "model.json",
        "model.xml",
        "model.savedmodel",
        "model.graphdef",
    )
)
