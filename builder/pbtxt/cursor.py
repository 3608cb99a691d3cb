"""Where the reader stands in the tokens of a `config.pbtxt`, and the problems that it met so far."""

from __future__ import annotations

from builder.pbtxt.scalars import Mistake
from builder.pbtxt.tokens import BROKEN_STRING, END, PLACEHOLDER, SYMBOL, tokenize
from builder.pbtxt.values import Problem, ProblemKind

MAX_PROBLEMS = 50


class Stop(Exception):
    """The message at hand cannot be read any further; the reader goes on behind it."""


class Cursor:
    """A place in the tokens of one text; `path` are the messages that it stands in."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.kinds, self.texts, self.offsets = tokenize(text)
        self.index = 0
        self.depth = 0
        self.path: list[str] = []
        self.problems: list[Problem] = []

    def at(self, symbol: str) -> bool:
        """Whether the token at hand is this symbol."""
        return self.texts[self.index] == symbol and self.kinds[self.index] == SYMBOL

    def take(self, symbol: str) -> bool:
        """Whether the token at hand was this symbol; then the cursor stands behind it."""
        if self.texts[self.index] == symbol and self.kinds[self.index] == SYMBOL:
            self.index += 1
            return True
        return False

    def problem(
        self, kind: ProblemKind, offset: int, found: str, expected: str, name: str = "", message: str = ""
    ) -> None:
        """Keep a problem; beyond a number that nobody reads they are dropped."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(
                Problem(
                    kind=kind,
                    offset=offset,
                    path=".".join(self.path),
                    name=name,
                    message=message,
                    found=found,
                    expected=expected,
                )
            )

    def unexpected(self, expected: str) -> None:
        """Say that the token at hand is not what the format wants."""
        kind, token, offset = self.kinds[self.index], self.texts[self.index], self.offsets[self.index]
        if kind == PLACEHOLDER:
            self.placeholder(offset, token)
        elif kind == BROKEN_STRING:
            self.problem(
                ProblemKind.SYNTAX, offset, "a string that is not closed on its line", "a closing quote is needed"
            )
        else:
            found = "the end of the file" if kind == END else f"`{token[:40]}`"
            self.problem(ProblemKind.SYNTAX, offset, found, expected)

    def mistake(self, offset: int, mistake: Mistake) -> None:
        """Keep what is wrong with a value."""
        self.problem(mistake.kind, offset, mistake.found, mistake.expected, mistake.name, mistake.message)

    def placeholder(self, offset: int, token: str, *, in_string: bool = False) -> None:
        """Keep that a template's placeholder was never filled in."""
        expected = "a text without placeholders is needed" if in_string else "a value is needed"
        self.problem(ProblemKind.PLACEHOLDER, offset, f"the placeholder {token}", expected, name=token.strip("${}"))
