"""Rules about names and values that Triton's ModelConfig message cannot hold.

The server's own words for all of these are `failed to read text proto`, without the field.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.catalog import Catalog, Entry
from builder.examine import Issue
from builder.fields import enums, homes, messages
from builder.findings import Problem, path_text, rule
from builder.rules.text import unknown_in_entries
from builder.tensors import did_you_mean, nearest

_WHY = "Triton reads a config as its ModelConfig message (common: protobuf/model_config.proto) and refuses the rest"


@rule("TK101", "error", "unknown field", why=_WHY)
def unknown_field(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A field that the message does not have, by typo or because it belongs elsewhere."""
    for issue in _issues(entry, "unknown"):
        known = list(messages().get(issue.message, {}))
        elsewhere = [path for path in homes().get(issue.word, ()) if "." in path or len(issue.path) > 1]
        match = nearest(issue.word, known)
        if match is None and elsewhere:
            fix = f"Move it to {' or '.join(elsewhere[:3])}"
        elif match is not None:
            fix = f"Write {match}"
        else:
            fix = "Take it out, or move what it says to a field of this list"
        yield Problem(
            path=issue.path,
            found=f"{issue.message} has no field {issue.word}{did_you_mean(issue.word, known)}",
            expected=f"one of {', '.join(sorted(known))} is needed",
            fix=fix,
        )


@rule("TK119", "error", "unknown field in an entry of a map", why=_WHY)
def unknown_in_entry(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """An entry has a key and a value, and nothing else."""
    for problem, line in unknown_in_entries(entry):
        yield Problem(
            line=line,
            found=f"an entry of {problem.path} has {problem.name}{did_you_mean(problem.name, ('key', 'value'))}",
            expected="key and value are needed",
            fix=f"Write {nearest(problem.name, ('key', 'value')) or 'key and value'}",
        )


@rule("TK102", "error", "value of the wrong type", why=_WHY)
def wrong_type(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A value that the field cannot hold."""
    for issue in _issues(entry, "type"):
        yield Problem(
            path=issue.path,
            found=f"{issue.word} is not {_needed(issue)}",
            expected=f"{_needed(issue)} is needed",
            fix=f"Write {path_text(issue.path) or 'the config'} as such",
        )


@rule("TK103", "error", "unknown word for a value", why=_WHY)
def unknown_value(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A value of an enum that does not exist."""
    for issue in _issues(entry, "enum"):
        assert issue.info is not None
        known = list(enums()[issue.info.type])
        word = issue.word.strip("'\"")
        yield Problem(
            path=issue.path,
            found=f"{issue.word} is no {issue.info.type}{did_you_mean(word, known)}",
            expected=f"one of {', '.join(known)} is needed",
            fix=f"Write {nearest(word, known) or 'one of them'}",
        )


@rule(
    "TK110",
    "error",
    "number that stands for no value",
    why="Protobuf keeps a number without a name, so the server loads it and treats it as it likes (seen on 2.51)",
    server="accepts",
)
def unknown_number(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A number in place of an enum's word, which belongs to none."""
    for issue in _issues(entry, "number"):
        assert issue.info is not None
        yield Problem(
            path=issue.path,
            found=f"{issue.word} stands for no {issue.info.type}",
            expected=f"one of {', '.join(enums()[issue.info.type])} is needed",
            fix="Write the word that is meant",
        )


@rule("TK104", "error", "two fields of which only one may be given", why=f"{_WHY}; these are members of one oneof")
def two_of_one(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Two members of a oneof, such as two schedulers."""
    for issue in _issues(entry, "oneof"):
        yield Problem(
            path=issue.path,
            found=f"{issue.word} is given too",
            expected=f"only one of {issue.word} and {issue.path[-1]} can be given",
            fix="Keep one of them",
        )


@rule("TK105", "error", "field newer than the server", why=f"{_WHY}; a field it does not know makes it refuse the file")
def newer_than_target(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A field or value that a later release brought."""
    for issue in _issues(entry, "newer"):
        if not catalog.target.has(issue.since):
            assert issue.since is not None
            container, version = issue.since
            yield Problem(
                path=issue.path,
                found=f"{issue.word} came with {container} (Triton {version})",
                expected=f"what {catalog.target.container} knows is needed",
                fix=f"Take it out, and do without what it sets; or serve with {container} or later",
            )


def _issues(entry: Entry, kind: str) -> Iterator[Issue]:
    return (issue for issue in entry.issues if issue.kind == kind)


def _needed(issue: Issue) -> str:
    if issue.info is None:
        return f"a dict by the names of {issue.message}"
    words = {"bool": "True or False", "string": "text", "double": "a number", "float": "a number"}
    one = f"a dict by the names of {issue.info.type}" if issue.info.kind == "message" else issue.info.type
    one = words.get(one, f"a whole number ({one})" if "int" in one and issue.info.kind == "scalar" else one)
    if isinstance(issue.path[-1], int) or issue.path[-1] != issue.info.name:
        return one
    if issue.info.map_key is not None:
        return f"a dict whose values are {one}"
    return f"a list of {one}" if issue.info.repeated else one
