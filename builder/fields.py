"""What Triton's ModelConfig message knows: every field, its type, and the release that brought it. As data.

In: nothing but `data/model_config_fields.json`. Out: `FieldInfo` by message and field name.
Rules and the checker of hand-written files ask here, so that neither needs protobuf.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

ROOT = "ModelConfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldInfo:
    """One field of a message.

    Attributes:
        type: scalar word (`int64`, `string`, `bool`...), or the name of a message or an enum.
        kind: `scalar`, `message` or `enum`; for a map it is what the values are.
        map_key: type of the key where the field is a map.
        since: (container tag, Triton version) that brought it; None when the oldest release examined has it.
    """

    message: str
    name: str
    type: str
    kind: str
    repeated: bool
    map_key: str | None
    oneof: str | None
    since: tuple[str, str] | None


@cache
def table() -> Mapping[str, Any]:
    """The data file, read once."""
    text = resources.files("builder").joinpath("data/model_config_fields.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(text))


@cache
def messages() -> Mapping[str, Mapping[str, FieldInfo]]:
    """Every message's fields by name."""
    rows = table()["fields"]
    by_message: dict[str, dict[str, Mapping[str, Any]]] = {}
    for path, row in rows.items():
        message, _, name = path.rpartition(".")
        by_message.setdefault(message, {})[name] = row
    return {
        message: {name: _field(message, name, row, by_message) for name, row in fields.items()}
        for message, fields in by_message.items()
    }


def _field(message: str, name: str, row: Mapping[str, Any], by_message: Mapping[str, Any]) -> FieldInfo:
    repeated = row["type"].startswith("repeated ")
    type_, map_key = row["type"].removeprefix("repeated "), None
    if type_.endswith("Entry"):
        entry = by_message[type_]
        type_, map_key, repeated = entry["value"]["type"], entry["key"]["type"], False
    kind = "enum" if type_ in enums() else "scalar" if type_[0].islower() else "message"
    since = (row["since_container"], row["since_triton"]) if row["since_triton"] else None
    return FieldInfo(
        message=message,
        name=name,
        type=type_,
        kind=kind,
        repeated=repeated,
        map_key=map_key,
        oneof=row["oneof"],
        since=since,
    )


@cache
def enums() -> Mapping[str, Mapping[str, tuple[str, str] | None]]:
    """Every enum's values, with the release that brought each (None: always there)."""
    result: dict[str, dict[str, tuple[str, str] | None]] = {}
    for path, row in table()["enum_values"].items():
        enum, _, value = path.rpartition(".")
        since = (row["since_container"], row["since_triton"]) if row["since_triton"] else None
        result.setdefault(enum, {})[value] = since
    return result


@cache
def homes() -> Mapping[str, tuple[str, ...]]:
    """For a field's name, every path below a config at which a field of that name is known."""
    found: dict[str, list[str]] = {}

    def walk(message: str, prefix: str, seen: tuple[str, ...]) -> None:
        for info in messages().get(message, {}).values():
            path = f"{prefix}{info.name}"
            found.setdefault(info.name, []).append(path)
            if info.kind == "message" and info.type not in seen:
                walk(info.type, f"{path}.", (*seen, info.type))

    walk(ROOT, "", (ROOT,))
    return {name: tuple(paths) for name, paths in found.items()}


@cache
def containers() -> Mapping[str, str]:
    """Triton's version by container tag (`25.07` is `2.59.1`: a table, because no arithmetic gives it)."""
    return {row["container"]: row["triton"] for row in table()["containers"]}
