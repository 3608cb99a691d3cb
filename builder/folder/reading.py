"""A repository folder as somebody wrote it, read into the catalog that the rules look at.

In: a folder. Out: a `Catalog`, and what was not read and why. Nothing outside the folder is read, links included; a
link that leads out is followed only to see that something is there. Nothing raises for what the folder holds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.catalog import Catalog, Entry, Target, entry
from builder.errors import RepositoryError
from builder.folder.disk import file_size, is_folder, is_inside, list_folder, read_file
from builder.folder.environments import Environment, read_environment
from builder.folder.onnxfile import OnnxFile, read_onnx
from builder.folder.pythonfile import PythonFile, read_python
from builder.folder.values import ModelFolder, Unread, VersionFolder
from builder.folder.versions import version_number
from builder.launch import Launch
from builder.pbtxt import MAX_BYTES, Document, read

CONFIG = "config.pbtxt"
MAX_JSON = 1024 * 1024
_OUTSIDE = "it is a link that leads out of the repository; nothing behind it was read"


@dataclass(frozen=True, slots=True)
class DocumentLines(Mapping[tuple[str | int, ...], int]):
    """Line of each path of a config, looked up only when somebody asks."""

    document: Document

    def __getitem__(self, path: tuple[str | int, ...]) -> int:
        return self.document.locate(path)[0]

    def __contains__(self, path: object) -> bool:
        return True

    def __iter__(self) -> Iterator[tuple[str | int, ...]]:
        return iter(())

    def __len__(self) -> int:
        return 0


def read_repository(path: Path, target: Target, profile: str = "cpu", launch: Launch | None = None) -> Catalog:
    """Every model of the folder, and the line that starts a server over it.

    Raises:
        RepositoryError: there is no such folder, or it cannot be listed.
    """
    root = Path(os.path.realpath(path))
    found, problem = list_folder(root)
    if problem and not found:
        raise RepositoryError(
            where=str(path),
            found=problem,
            expected="a folder with one folder for each model is needed",
            fix="Name the folder that `--model-repository` names",
        )
    entries = {one.name: _entry(one, root, profile) for one in found if is_folder(one)}
    return Catalog(entries=entries, target=target, profile=profile, launch=launch)


def _entry(model: os.DirEntry[str], root: Path, profile: str) -> Entry:
    path = root / model.name
    if not is_inside(path, root):
        folder = ModelFolder(
            document=None,
            config_file=model.name,
            names=frozenset(),
            versions=(),
            unread=(Unread(path=model.name, reason=_OUTSIDE),),
        )
        return entry(model.name, {}, file=model.name, folder=folder)
    folder = _folder(path, root, profile)
    config = completed(model.name, dict(folder.document.config) if folder.document else {}, folder)
    return entry(
        model.name,
        config,
        versions=tuple(sorted(one.number for one in folder.versions if one.number is not None)),
        file=folder.config_file,
        lines=DocumentLines(folder.document) if folder.document else {},
        folder=folder,
    )


def _folder(path: Path, root: Path, profile: str) -> ModelFolder:
    unread: list[Unread] = []
    found, problem = list_folder(path)
    if problem:
        unread.append(Unread(path=path.name, reason=problem))
    names: set[str] = set()
    versions: list[VersionFolder] = []
    overflowing: list[str] = []
    for one in found:
        names.add(one.name)
        if not is_folder(one):
            continue
        is_read = is_inside(path / one.name, root)
        inside, problem = list_folder(path / one.name) if is_read else ((), _OUTSIDE)
        if problem:
            unread.append(Unread(path=f"{path.name}/{one.name}", reason=problem))
        names.update(f"{one.name}/{inner.name}" for inner in inside)
        try:
            number = version_number(one.name)
        except OverflowError:
            overflowing.append(one.name)
            continue
        files = frozenset(inner.name for inner in inside)
        versions.append(VersionFolder(name=one.name, number=number, files=files, is_read=is_read and not problem))
    config_name = _config_name(names, profile)
    document, is_a_folder = _document(path, root, config_name, names, unread)
    config: Mapping[str, Any] = document.config if document is not None else {}
    reader = _Files(path, root, unread)
    return ModelFolder(
        document=document,
        config_file=f"{path.name}/{config_name}" if config_name in names else path.name,
        config_is_folder=is_a_folder,
        names=frozenset(names),
        versions=tuple(versions),
        overflowing=tuple(overflowing),
        python={one.name: reader.python(one, config) for one in versions if reader.has_python(one, config)},
        onnx={one.name: reader.onnx(one, config) for one in versions if reader.has_onnx(one, config)},
        sizes=reader.sizes(config),
        json_files=reader.json_files(versions),
        environments=reader.environments(config),
        unread=tuple(unread),
    )


def _config_name(names: set[str], profile: str) -> str:
    special = f"configs/{profile}.pbtxt"
    return special if profile != "cpu" and special in names else CONFIG


def _document(path: Path, root: Path, name: str, names: set[str], unread: list[Unread]) -> tuple[Document | None, bool]:
    if name not in names:
        return None, False
    if (path / name).is_dir():
        return None, True
    data, problem = read_file(path / name, root, MAX_BYTES)
    if data is None:
        unread.append(Unread(path=f"{path.name}/{name}", reason=problem))
        return None, False
    if len(data) > MAX_BYTES:
        # `read` says so itself, from the length alone.
        size = file_size(path / name) or len(data)
        unread.append(
            Unread(path=f"{path.name}/{name}", reason=f"{size} bytes; at most {MAX_BYTES} of a config are read")
        )
        return None, False
    return read(data), False


def completed(name: str, config: dict[str, Any], folder: ModelFolder) -> dict[str, Any]:
    """The config with backend and platform filled in from the files, as the server fills them in before it checks."""
    if config.get("backend") or config.get("platform") or folder.document is not None and folder.document.problems:
        return config
    first = min(folder.versions, key=lambda one: one.name, default=None)
    file_name = config.get("default_model_filename", "")
    files = {file_name} if file_name else first.files if first is not None else frozenset()
    for candidate, backend in (
        ("model.savedmodel", "tensorflow"),
        ("model.graphdef", "tensorflow"),
        ("model.plan", "tensorrt"),
        ("model.onnx", "onnxruntime"),
        ("model.xml", "openvino"),
        ("model.pt", "pytorch"),
        ("model.py", "python"),
    ):
        if candidate in files:
            return {**config, "backend": backend}
    if not file_name and "." in name and "ensemble_scheduling" not in config:
        return {**config, "backend": name.partition(".")[2]}
    return config


class _Files:
    """The files of one model that a rule looks into."""

    def __init__(self, path: Path, root: Path, unread: list[Unread]) -> None:
        self.path, self.root, self.unread = path, root, unread

    def has_python(self, version: VersionFolder, config: Mapping[str, Any]) -> bool:
        name = config.get("default_model_filename") or "model.py"
        return isinstance(name, str) and name in version.files and name.endswith(".py")

    def python(self, version: VersionFolder, config: Mapping[str, Any]) -> PythonFile:
        name = config.get("default_model_filename") or "model.py"
        data, problem = read_file(self.path / version.name / name, self.root, 4 * 1024 * 1024)
        if data is None:
            self.unread.append(Unread(path=f"{self.path.name}/{version.name}/{name}", reason=problem))
            return PythonFile(has_class=True)
        return read_python(data)

    def has_onnx(self, version: VersionFolder, config: Mapping[str, Any]) -> bool:
        name = config.get("default_model_filename") or "model.onnx"
        return isinstance(name, str) and name in version.files and name.endswith(".onnx")

    def onnx(self, version: VersionFolder, config: Mapping[str, Any]) -> OnnxFile:
        name = config.get("default_model_filename") or "model.onnx"
        file = self.path / version.name / name
        if not is_inside(file, self.root):
            reason = "a link that leads out of the repository; its names and types were not compared"
            self.unread.append(Unread(path=f"{self.path.name}/{version.name}/{name}", reason=reason))
            return OnnxFile(is_read=False)
        if file_size(file) is None:  # a folder: a large model in parts
            return OnnxFile(is_read=False)
        return read_onnx(file)

    def sizes(self, config: Mapping[str, Any]) -> dict[str, int]:
        """Bytes of what the config names: labels, warm-up data, initial states. Folders have -1."""
        wanted: list[str] = []
        for output in _messages(config, "output"):
            wanted.append(str(output.get("label_filename", "")))
        for sample in _messages(config, "model_warmup"):
            inputs = sample.get("inputs")
            for one in inputs.values() if isinstance(inputs, dict) else ():
                if isinstance(one, dict) and "input_data_file" in one:
                    wanted.append(f"warmup/{one['input_data_file']}")
        batching = config.get("sequence_batching")
        for state in _messages(batching if isinstance(batching, dict) else {}, "state"):
            for initial in _messages(state, "initial_state"):
                if "data_file" in initial:
                    wanted.append(f"initial_state/{initial['data_file']}")
        result: dict[str, int] = {}
        for name in wanted:
            path = self.path / name
            if name and is_inside(path, self.root):
                size = file_size(path)
                result[name] = -1 if size is None else size
        return result

    def json_files(self, versions: list[VersionFolder]) -> dict[str, Mapping[str, object]]:
        """Small JSON files that describe a model: vLLM's engine arguments, checkpoint and plan manifests."""
        result: dict[str, Mapping[str, object]] = {}
        for version in versions:
            for name in version.files & {
                "model.json",
                "config.json",
                "preprocessor_config.json",
                "whisper.json",
                "plan.json",
            }:
                data, _ = read_file(self.path / version.name / name, self.root, MAX_JSON)
                if data is None or len(data) > MAX_JSON:
                    continue
                try:
                    value = json.loads(data)
                except (ValueError, RecursionError):
                    value = None
                result[f"{version.name}/{name}"] = value if isinstance(value, dict) else {}
        return result

    def environments(self, config: Mapping[str, Any]) -> dict[str, Environment]:
        """What is in the packed Python environment that the config names, where it lies in the model's folder."""
        parameters = config.get("parameters")
        given = parameters.get("EXECUTION_ENV_PATH") if isinstance(parameters, dict) else None
        value = given.get("string_value", "") if isinstance(given, dict) else ""
        prefix = "$$TRITON_MODEL_DIRECTORY/"
        if not isinstance(value, str) or not value.startswith(prefix):
            return {}
        path = self.path / value.removeprefix(prefix)
        return {value: read_environment(path)} if is_inside(path, self.root) else {}


def _messages(config: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    value = config.get(field)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
