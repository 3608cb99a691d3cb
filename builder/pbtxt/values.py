"""What reading a `config.pbtxt` gives: the config as nested dicts by Triton's names, and what was wrong with the text.

A `Message` is a plain dict for everyone who only wants the config, and knows besides where each of its fields stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any


class Message(dict[str, Any]):
    """One message: field name to value, and the places of the fields in the text.

    Attributes:
        start: offset of what opens the message (0 for the whole file).
        at: field name to the offset of its first mention; for repeated scalars to one offset per element.
    """

    __slots__ = ("at", "start")

    def __init__(self, start: int = 0) -> None:
        super().__init__()
        self.start = start
        self.at: dict[str, int | list[int]] = {}


@dataclass(frozen=True, slots=True)
class Mistyped:
    """A value that its field cannot hold, kept as it stands in the text. No rule takes it for a number or a text."""

    token: str

    def __repr__(self) -> str:
        return self.token


class ProblemKind(Enum):
    """What is wrong with a place of the text; all but DUPLICATE_KEY and NOT_UTF8 make the server refuse the file."""

    SYNTAX = "syntax"
    UNKNOWN_FIELD = "unknown field"
    UNKNOWN_ENUM_VALUE = "unknown enum value"
    WRONG_TYPE = "wrong type"
    OUT_OF_RANGE = "out of range"
    GIVEN_TWICE = "given twice"
    ONE_OF = "one of"
    PLACEHOLDER = "placeholder"
    ENCODING = "encoding"
    NOT_UTF8 = "not utf-8"
    TOO_DEEP = "too deep"
    TOO_LARGE = "too large"
    DUPLICATE_KEY = "duplicate key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with the text.

    Attributes:
        path: field names from the top to the message in question, dotted.
        name: the field, enum value or key it is about; empty where there is none.
        message: the message's type (`ModelInput`), which says what would have been allowed; empty where unknown.
    """

    kind: ProblemKind
    offset: int
    path: str
    name: str
    message: str
    found: str
    expected: str


@dataclass(frozen=True, kw_only=True)
class Document:
    """A text that was read: as much of the config as could be understood, and every problem."""

    text: str
    config: Message
    problems: tuple[Problem, ...]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(index + 1 for index, char in enumerate(self.text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of an offset of the text."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def locate(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Line and column of the deepest field of `path` (`("input", 0, "dims")`) that stands in the text."""
        return self.position(offset_of(self.config, path))


def offset_of(message: Message, path: Sequence[str | int]) -> int:
    """Offset of the deepest part of `path` below `message` that the text holds."""
    offset, value, places = message.start, message, None
    for part in path:
        if isinstance(part, str):
            if not isinstance(value, Message) or part not in value:
                break
            places, value = value.at.get(part, offset), value[part]
            offset = places[0] if isinstance(places, list) and places else places if isinstance(places, int) else offset
        else:
            if not isinstance(value, list) or part >= len(value):
                break
            value = value[part]
            if isinstance(value, Message):
                offset = value.start
            elif isinstance(places, list) and part < len(places):
                offset = places[part]
    return offset
