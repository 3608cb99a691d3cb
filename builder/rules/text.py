"""Rules about the text of a `config.pbtxt` (protobuf's text format, read by the server's C++ parser).

The server refuses such a file with `failed to read text proto`; line and reason stand only in its own log.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.pbtxt import Problem as TextProblem
from builder.pbtxt import ProblemKind

_WHY = "protobuf: text format specification; the server says only: failed to read text proto"
_SYNTAX = (ProblemKind.SYNTAX, ProblemKind.TOO_DEEP, ProblemKind.ENCODING)


@rule("TK106", "error", "text that does not parse", why=_WHY)
def not_parsed(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A place where the text is no text format. The rest of this config is checked once it parses."""
    for problem, line, column in _problems(entry, *_SYNTAX):
        yield Problem(
            line=line,
            found=f"column {column}: {problem.found}",
            expected=problem.expected or "text format is needed",
            fix="Correct the text; what else may be wrong in this file is told once it parses",
        )


@rule("TK107", "error", "field given twice", why=_WHY)
def given_twice(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A field that stands once in its message, given again."""
    for problem, line, _ in _problems(entry, ProblemKind.GIVEN_TWICE):
        yield Problem(
            line=line,
            found=f"{problem.found}{_of(problem)}",
            expected=problem.expected,
            fix=f"Keep one {problem.name}",
        )


@rule("TK108", "error", "placeholder left in the text", why="A template was not filled in (DEP-03)")
def placeholder(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`${name}` where a number, a word or a message is needed."""
    for problem, line, _ in _problems(entry, ProblemKind.PLACEHOLDER):
        if not _is_in_string(problem):
            yield _placeholder(problem, line)


@rule(
    "TK109",
    "error",
    "placeholder left in a string",
    why="A template was not filled in (DEP-03); inside quotes the server takes it as it is",
    server="accepts",
)
def placeholder_in_string(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """`${name}` inside quotes: it parses, and means nothing."""
    for problem, line, _ in _problems(entry, ProblemKind.PLACEHOLDER):
        if _is_in_string(problem):
            yield _placeholder(problem, line)


@rule(
    "TK116",
    "error",
    "key given twice in a map",
    why="The server's parser keeps the last entry and says nothing (seen on 2.51)",
    server="accepts",
)
def duplicate_key(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """One key with two values, as in two `input_map` entries for one input."""
    for problem, line, _ in _problems(entry, ProblemKind.DUPLICATE_KEY):
        yield Problem(
            line=line,
            found=f"{problem.found}{_of(problem)}",
            expected=problem.expected,
            fix="Keep the entry that is meant",
        )


@rule(
    "TK118",
    "error",
    "text that is not UTF-8",
    why="The server takes the bytes as they are; a client that asks for the config cannot decode them",
    server="accepts",
)
def not_utf8(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Bytes of another encoding, in a name or a comment."""
    for problem, line, column in _problems(entry, ProblemKind.NOT_UTF8):
        yield Problem(
            line=line,
            found=f"column {column}: {problem.found}",
            expected=problem.expected,
            fix="Save the file as UTF-8",
        )


def unknown_in_entries(entry: Entry) -> Iterator[tuple[TextProblem, int]]:
    """Fields of a map's entry that are neither key nor value, with their line: the config has no place for them."""
    for problem, line, _ in _problems(entry, ProblemKind.UNKNOWN_FIELD):
        if problem.message.endswith("Entry"):
            yield problem, line


def is_readable(entry: Entry) -> bool:
    """Whether the text was read and parsed, so that what is not in the config is not in the file either."""
    folder = entry.folder
    if folder is None:
        return True
    if any(one.path.endswith(".pbtxt") for one in folder.unread) or (folder.unread and not folder.names):
        return False
    kinds = (*_SYNTAX, ProblemKind.PLACEHOLDER)
    problems = folder.document.problems if folder.document is not None else ()
    return not any(one.kind in kinds and not _is_in_string(one) for one in problems)


def _problems(entry: Entry, *kinds: ProblemKind) -> Iterator[tuple[TextProblem, int, int]]:
    document = entry.folder.document if entry.folder is not None else None
    for problem in document.problems if document is not None else ():
        if problem.kind in kinds and document is not None:
            yield problem, *document.position(problem.offset)


def _is_in_string(problem: TextProblem) -> bool:
    """A placeholder in a string was found inside the token, so its own token does not begin there."""
    return problem.kind is ProblemKind.PLACEHOLDER and problem.expected.startswith("a text")


def _placeholder(problem: TextProblem, line: int) -> Problem:
    return Problem(
        line=line,
        found=f"{problem.found}{_of(problem)}",
        expected=problem.expected,
        fix=f"Put in the value of {problem.name}",
    )


def _of(problem: TextProblem) -> str:
    return f" in {problem.path}" if problem.path else ""
