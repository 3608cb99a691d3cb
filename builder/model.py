"""A model: any part of Triton's ModelConfig by Triton's own names, and the files of its folder.

Functions in `backends/` and `models/` return one. A person can also write `Model(name=..., config={...})`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from builder.tensors import tensor

PROFILES = ("cpu", "gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Files kept in version control that a model's folder needs: served code, labels, a whole folder.

    Attributes:
        source: the folder they lie in.
        target: where they go, below the model's folder: "1", or "" for the model's folder itself.
    """

    source: Path
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Files that are made, not written: weights, tokenizers. Linked into the version folder, never committed.

    Attributes:
        source: a path; a relative one lies below the folder of exports.
        target: the path in the version folder. A folder for a `source` that is a folder or a pattern.
        exclude: for a pattern in `source`, names that it leaves out.
        needed: False for what only some exports have, such as weights beside an ONNX file.
    """

    source: Path
    target: str
    exclude: tuple[str, ...] = ()
    needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRTPlan:
    """A TensorRT plan to build from a model's ONNX file, on the kind of GPU and in the release that will run it.

    Attributes:
        source, target: the ONNX file, and the plan; relative paths lie below the folder of exports.
        shapes: by input its smallest, usual and largest shape, the batch included.
        workspace_mib: what building may take for the moment.
    """

    source: Path
    target: Path
    shapes: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    workspace_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model of a repository.

    Attributes:
        name: the model's name, also its folder's.
        config: ModelConfig without `name`, by Triton's names. Tensors may be given in their short form, parameters
            as plain strings. Wrong names and types are found by the rules, all at once.
        profiles: by profile ("gpu"), what differs there; dicts are merged, anything else replaces.
        trees: files under version control.
        artifacts: files that are made, for the version folder.
        texts: text to write, by path in the version folder: `{"model.json": "..."}`.
        pass_through: outputs that exist only when the input of the same name is given.
        usual: sizes that vary, as a usual request has them, for what is added up beforehand: by tensor its dims (of a
            string its bytes), and by name of an axis in its ONNX files that axis' size; `FILE:AXIS` for one of them.
        device_bytes: what its code takes of each GPU it has an instance on, besides ONNX files and its context.
        serves_neighbours: it has an instance on a GPU only to give or take tensors there: pointless where the ONNX
            backend takes them from the host.
        tensorrt: the plan that its gpu profile runs, where it runs one.
        requirements: what its own Python environment holds, as pip takes it; none if it runs in the server's.
        version: number of the version folder.
        verbatim: the folder in `trees` has its own config.pbtxt, which stays as it is.
    """

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    trees: tuple[Tree, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    pass_through: tuple[str, ...] = ()
    usual: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    device_bytes: int = 0
    serves_neighbours: bool = False
    tensorrt: TensorRTPlan | None = None
    requirements: tuple[str, ...] = ()
    version: int = 1
    verbatim: bool = False

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "config", freeze(written_out(self.config)))
        set_(self, "profiles", freeze({name: written_out(part) for name, part in self.profiles.items()}))
        set_(self, "texts", freeze(self.texts))
        set_(self, "usual", freeze(self.usual))
        for name in ("trees", "artifacts", "pass_through", "requirements"):
            set_(self, name, tuple(getattr(self, name)))

    def config_for(self, profile: str) -> dict[str, Any]:
        """The whole config for a profile, `name` included."""
        return {"name": self.name, **merged(thaw(self.config), thaw(self.profiles.get(profile, {})))}


def written_out(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with its short forms written out: tensors, parameters, a single instance group."""
    result = dict(config)
    for side in ("input", "output"):
        if isinstance(result.get(side), str):
            result[side] = [result[side]]
        if isinstance(result.get(side), Iterable):
            result[side] = [tensor(one) if isinstance(one, str | Mapping) else one for one in result[side]]
    if isinstance(result.get("parameters"), Mapping):
        result["parameters"] = {
            key: {"string_value": value} if isinstance(value, str) else value
            for key, value in result["parameters"].items()
        }
    if isinstance(result.get("instance_group"), Mapping):
        result["instance_group"] = [result["instance_group"]]
    return result


def merged(base: Any, over: Any) -> Any:
    """`base` changed by `over`: dicts key by key, anything else replaced. Neither argument is changed."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: merged(base[key], value) if key in base else value for key, value in over.items()}}


def freeze(value: Any) -> Any:
    """The value with read-only dicts and tuples inside."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: freeze(one) for key, one in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(one) for one in value)
    return value


def thaw(value: Any) -> Any:
    """The value with plain dicts and lists inside; a copy."""
    if isinstance(value, Mapping):
        return {key: thaw(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(one) for one in value]
    return value
