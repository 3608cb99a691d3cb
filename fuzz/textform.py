"""Configs as text, in any of the forms that the text format allows, chosen by a random generator."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from builder.fields import ROOT, FieldInfo, messages


def config_text(config: Mapping[str, Any], chance: random.Random) -> str:
    """The text of a config; which separators, brackets and quotes it uses is up to `chance`."""
    return _Writer(chance).fields(config, ROOT, "\n")


class _Writer:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def fields(self, values: Mapping[str, Any], message: str, between: str) -> str:
        known = messages().get(message, {})
        written = [self.field(name, value, known.get(name)) for name, value in values.items()]
        return between.join(one for one in written if one)

    def field(self, name: str, value: Any, info: FieldInfo | None) -> str:
        if info is not None and info.map_key is not None and isinstance(value, Mapping):
            entries = [self.entry(key, one, info) for key, one in value.items()]
            return self.repeated(name, entries)
        if isinstance(value, list | tuple):
            return self.repeated(name, [self.value(one, info) for one in value])
        return self.single(name, self.value(value, info))

    def repeated(self, name: str, values: list[str]) -> str:
        if self.chance.random() < 0.6 or not values:
            colon = self.chance.choice([" ", ": ", ":"]) if values and values[0][:1] in "{<" else ": "
            return f"{name}{colon}[ {', '.join(values)} ]"
        return " ".join(self.single(name, value) for value in values)

    def single(self, name: str, value: str) -> str:
        colon = self.chance.choice(["", ":"]) if value[:1] in "{<" else ":"
        end = self.chance.choices(["", ";", ",", " # a comment\n"], [20, 1, 1, 1])[0]
        return f"{name}{colon} {value}{end}"

    def entry(self, key: Any, value: Any, info: FieldInfo) -> str:
        return self.message(f"key: {self.scalar(key, info.map_key == 'string')} value: {self.value(value, info)}")

    def message(self, inside: str) -> str:
        return f"< {inside} >" if self.chance.random() < 0.05 else f"{{ {inside} }}"

    def value(self, value: Any, info: FieldInfo | None) -> str:
        if isinstance(value, Mapping):
            return self.message(self.fields(value, info.type if info is not None else "", " "))
        is_text = info is None or info.type == "string"
        return self.scalar(value, is_text and not (info is not None and info.kind == "enum"))

    def scalar(self, value: Any, is_text: bool) -> str:
        if isinstance(value, bool):
            return self.chance.choice(["true", "True", "t", "1"] if value else ["false", "False", "f", "0"])
        if isinstance(value, str) and is_text:
            return self.quoted(value)
        if isinstance(value, int) and value > 7 and self.chance.random() < 0.1:
            return hex(value)
        return str(value)

    def quoted(self, value: str) -> str:
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').replace("'", "\\'")
        if len(value) > 1 and value.isalnum() and self.chance.random() < 0.05:
            middle = len(value) // 2
            return f"\"{value[:middle]}\" '{value[middle:]}'"
        return f"'{escaped}'" if self.chance.random() < 0.1 else f'"{escaped}"'


_PIECES = (
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    ";",
    '"',
    "<",
    ">",
    "-1",
    "0",
    "1.5",
    "x",
    "#",
    "\n",
    "TYPE_FP32",
    "${x}",
    "\\",
    "é",
)


def damaged(text: str, chance: random.Random) -> str:
    """The text with one or two places deleted, doubled, moved or overwritten."""
    for _ in range(chance.choice([1, 1, 2])):
        at = chance.randrange(len(text) + 1)
        length = chance.choice([1, 1, 2, 5, 20])
        kind = chance.randrange(5)
        if kind == 0:
            text = text[:at] + text[at + length :]
        elif kind == 1:
            text = text[:at] + chance.choice(_PIECES) + text[at:]
        elif kind == 2:
            text = text[:at] + text[at : at + length] + text[at:]
        elif kind == 3:
            text = text[:at] + chance.choice(_PIECES) + text[at + 1 :]
        else:
            lines = text.splitlines(keepends=True)
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines) if lines else "")
            text = "".join(lines)
    return text
