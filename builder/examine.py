"""A config held against the table of fields: what in it is not Triton's, and the config without that.

In: nested dicts as somebody wrote them, so anything may be in them. Out: a config in which every name and type is
right, and one `Issue` for everything that was taken out. The rules after this one never meet a wrong type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from builder.fields import ROOT, FieldInfo, enums, messages

Path = tuple[str | int, ...]

_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One thing in a config that the message cannot hold (or, for "newer", that an older server cannot).

    Attributes:
        kind: "unknown" field, wrong "type", unknown "enum" value, "number" of no value, "oneof" given twice, "newer"
            than some server.
        message: the message that was being read.
        info: the field, where it is known.
        word: the name or value meant, as text.
        since: for "newer", (container, version) that brought it.
    """

    kind: Literal["unknown", "type", "enum", "number", "oneof", "newer"]
    path: Path
    message: str
    word: str
    info: FieldInfo | None = None
    since: tuple[str, str] | None = None


def examine(config: Any) -> tuple[dict[str, Any], tuple[Issue, ...]]:
    """The config with everything wrong taken out, and what that was."""
    issues: list[Issue] = []
    clean = _message(config, ROOT, (), issues)
    return (clean if clean is not None else {}), tuple(issues)


def _message(values: Any, message: str, path: Path, issues: list[Issue]) -> dict[str, Any] | None:
    if not isinstance(values, Mapping):
        issues.append(Issue(kind="type", path=path, message=message, word=_shown(values)))
        return None
    known = messages().get(message, {})
    clean: dict[str, Any] = {}
    taken: dict[str, str] = {}
    for name, value in values.items():
        here = (*path, name)
        info = known.get(name) if isinstance(name, str) else None
        if info is None:
            issues.append(Issue(kind="unknown", path=here, message=message, word=str(name)))
            continue
        if info.since is not None:
            issues.append(Issue(kind="newer", path=here, message=message, word=name, info=info, since=info.since))
        if info.oneof is not None and taken.setdefault(info.oneof, name) != name:
            issues.append(Issue(kind="oneof", path=here, message=message, word=taken[info.oneof], info=info))
            continue
        found = _field(value, info, here, issues)
        if found is not None:
            clean[name] = found
    return clean


def _field(value: Any, info: FieldInfo, path: Path, issues: list[Issue]) -> Any:
    if info.map_key is not None:
        return _map(value, info, path, issues)
    if not info.repeated:
        return _one(value, info, path, issues)
    if not isinstance(value, list | tuple):
        issues.append(Issue(kind="type", path=path, message=info.message, word=_shown(value), info=info))
        return None
    found = [_one(one, info, (*path, index), issues) for index, one in enumerate(value)]
    return [one for one in found if one is not None]


def _map(value: Any, info: FieldInfo, path: Path, issues: list[Issue]) -> dict[Any, Any] | None:
    if not isinstance(value, Mapping):
        issues.append(Issue(kind="type", path=path, message=info.message, word=_shown(value), info=info))
        return None
    clean = {}
    for key, one in value.items():
        if not _is_scalar(key, info.map_key or ""):
            issues.append(Issue(kind="type", path=(*path, key), message=info.message, word=_shown(key), info=info))
            continue
        found = _one(one, info, (*path, key), issues)
        if found is not None:
            clean[key] = found
    return clean


def _one(value: Any, info: FieldInfo, path: Path, issues: list[Issue]) -> Any:
    if info.kind == "message":
        return _message(value, info.type, path, issues)
    if info.kind == "enum":
        return _enum(value, info, path, issues)
    if _is_scalar(value, info.type):
        return value
    issues.append(Issue(kind="type", path=path, message=info.message, word=_shown(value), info=info))
    return None


def _enum(value: Any, info: FieldInfo, path: Path, issues: list[Issue]) -> str | int | None:
    known = enums()[info.type]
    if isinstance(value, str) and value in known:
        if known[value] is not None:
            issues.append(
                Issue(kind="newer", path=path, message=info.message, word=value, info=info, since=known[value])
            )
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        # Protobuf's enums are open: a number without a name is kept, by the server too.
        issues.append(Issue(kind="number", path=path, message=info.message, word=str(value), info=info))
        return value
    issues.append(Issue(kind="enum", path=path, message=info.message, word=_shown(value), info=info))
    return None


def _is_scalar(value: Any, type_: str) -> bool:
    if type_ in _RANGES:
        low, high = _RANGES[type_]
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    if type_ == "bool":
        return isinstance(value, bool)
    if type_ in ("float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
