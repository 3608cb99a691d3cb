"""A repository's own settings: `tritonkit.toml` in its folder. Keys that nobody knows are refused."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.errors import DeclarationError
from builder.findings import Finding
from builder.folder.disk import read_file
from builder.tensors import did_you_mean

FILE = "tritonkit.toml"
_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Codes that are switched off, for every model and for single ones; target and profile, where they are given."""

    ignore: frozenset[str] = frozenset()
    models: Mapping[str, frozenset[str]] = field(default_factory=dict)
    target: str | None = None
    profile: str | None = None

    def keeps(self, finding: Finding) -> bool:
        """Whether a finding is told."""
        return finding.code not in self.ignore and finding.code not in self.models.get(finding.model, frozenset())


def read_settings(repository: Path, codes: Iterable[str]) -> Settings:
    """The settings of a repository folder; none if it has no such file.

    Raises:
        DeclarationError: the file is no TOML, has a key that nobody knows, or a code that no rule has.
    """
    root = repository.resolve()
    if not (root / FILE).is_file():
        return Settings()
    data, problem = read_file(root / FILE, root, _MAX_BYTES)
    try:
        values = tomllib.loads((data or b"").decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problem = str(error)
    if problem:
        raise _error(FILE, problem, "a small TOML file is needed", "Correct the file")
    known = frozenset(codes)
    check = _table(values, "check", FILE, ("check",))
    _refuse_others(check, ("ignore", "target", "profile", "models"), "[check]")
    models = {
        name: _codes(_table(check.get("models", {}), name, "[check.models]", None), known, f"[check.models.{name}]")
        for name in check.get("models", {})
    }
    return Settings(
        ignore=_codes({key: value for key, value in check.items() if key == "ignore"}, known, "[check]"),
        models=models,
        target=_word(check, "target"),
        profile=_word(check, "profile"),
    )


def _table(values: Mapping[str, Any], name: str, where: str, allowed: tuple[str, ...] | None) -> Mapping[str, Any]:
    if allowed is not None:
        _refuse_others(values, allowed, where)
    table = values.get(name, {})
    if not isinstance(table, dict):
        raise _error(where, f"{name} is {table!r}", "a table is needed", f"Write [{name}] and its keys below")
    return table


def _codes(table: Mapping[str, Any], known: frozenset[str], where: str) -> frozenset[str]:
    _refuse_others(table, ("ignore",), where)
    codes = table.get("ignore", [])
    if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
        raise _error(where, f"ignore is {codes!r}", "a list of codes is needed", 'Write ignore = ["TK609"]')
    for code in codes:
        if code not in known:
            raise _error(
                where,
                f"no rule has the code {code}{did_you_mean(code, known)}",
                "a code is needed",
                "See tritonkit explain",
            )
    return frozenset(codes)


def _word(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise _error("[check]", f"{key} is {value!r}", "a text is needed", f'Write {key} = "..."')
    return value


def _refuse_others(table: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise _error(
                where,
                f"{key} is no setting{did_you_mean(key, allowed)}",
                f"one of {', '.join(allowed)} is needed",
                "Correct it",
            )


def _error(where: str, found: str, expected: str, fix: str) -> DeclarationError:
    place = where if where == FILE else f"{FILE}, {where}"
    return DeclarationError(where=place, found=found, expected=expected, fix=fix)
