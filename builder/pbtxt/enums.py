"""Enums of the field table by name and by number: text may give either."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from builder.fields import table


@cache
def enum_numbers() -> Mapping[str, tuple[Mapping[str, int], Mapping[int, str]]]:
    """For each enum, its numbers by name and its names by number."""
    result: dict[str, tuple[dict[str, int], dict[int, str]]] = {}
    for path, row in table()["enum_values"].items():
        enum, _, value = path.rpartition(".")
        by_name, by_number = result.setdefault(enum, ({}, {}))
        by_name[value] = row["number"]
        by_number[row["number"]] = value
    return result
