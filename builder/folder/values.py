"""What lies in a model's folder, as far as the rules ask: names, versions, signatures. Nothing left to open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from builder.folder.environments import Environment
from builder.folder.onnxfile import OnnxFile
from builder.folder.pythonfile import PythonFile
from builder.pbtxt import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFolder:
    """One folder inside a model's folder that could be meant as a version.

    Attributes:
        name: as the disk has it.
        number: the version that the server takes it for; None where it passes over it.
        files: names inside, one level.
        is_read: whether anybody looked inside; not into a link that leads out of the repository.
    """

    name: str
    number: int | None
    files: frozenset[str]
    is_read: bool = True

    @property
    def is_found(self) -> bool:
        """Whether the server, having taken it for `number`, finds it again under that number."""
        return self.number is not None and str(self.number) == self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A file or folder that was not read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """One first-level folder of a repository.

    Attributes:
        document: the text of its config as it was read; None where there is none.
        config_file: the config's path inside the repository, as findings name it.
        names: files and folders directly inside, and `folder/name` one level below.
        versions: its version folders, whatever the server makes of them.
        overflowing: names of version folders whose number no 64 bits hold.
        python, onnx: by version folder's name, what its model file says.
        sizes: bytes of the files that the config names (labels, warm-up data), -1 for a folder.
        json_files: by path, small files that describe a model.
        environments: by the parameter's value, packed Python environments in the model's folder.
        config_is_folder: whether `config.pbtxt` is a folder, which ends the server.
        unread: what could not be read.
    """

    document: Document | None
    config_file: str
    config_is_folder: bool = False
    names: frozenset[str]
    versions: tuple[VersionFolder, ...]
    overflowing: tuple[str, ...] = ()
    python: Mapping[str, PythonFile] = field(default_factory=dict)
    onnx: Mapping[str, OnnxFile] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    json_files: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    environments: Mapping[str, Environment] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()

    def has(self, name: str) -> bool:
        """Whether a file or folder of this name (at most two levels) is in the model's folder."""
        return name.strip("/") in self.names
