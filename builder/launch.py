"""A server's launch line, as far as the rules ask about it.

In: a line as somebody types it, `docker run` in front or not. Out: a `Launch`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from builder.errors import DeclarationError

# Flags of tritonserver that take no value.
_SWITCHES = frozenset(("disable-auto-complete-config", "log-verbose"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The flags of a launch line: name without dashes to its values, in order."""

    flags: Mapping[str, tuple[str, ...]]

    def has(self, name: str) -> bool:
        """Whether a flag is given."""
        return name in self.flags

    def values(self, name: str) -> tuple[str, ...]:
        """The values of a flag; none if it is not given."""
        return self.flags.get(name, ())


def parse_launch(line: str) -> Launch:
    """The flags of a launch line.

    Raises:
        DeclarationError: the line has quotes that are not closed.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise DeclarationError(
            where="launch line",
            found=str(error),
            expected="a line as a shell takes it is needed",
            fix="Close the quotes",
        ) from None
    flags: dict[str, list[str]] = {}
    for index, word in enumerate(words):
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word[2:].partition("=")
        following = words[index + 1] if index + 1 < len(words) else ""
        if not equals and following and not following.startswith("-") and name not in _SWITCHES:
            value = following
        flags.setdefault(name, []).append(value)
    return Launch(flags={name: tuple(values) for name, values in flags.items()})
