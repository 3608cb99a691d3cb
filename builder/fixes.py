"""Safe corrections of a repository's files: changes after which the server does what the file says already.

In: a catalog that was read from a folder, and its findings. Out: `Change`s, as whole new texts; nothing is on disk
until `write_changes`. A correction is safe when there is one thing that can be meant: `model_version` left out, a
field that an ensemble may not have, a key in the wrong case. What needs a decision is left to the person.
"""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.catalog import Catalog, Entry
from builder.findings import Finding
from builder.folder.disk import is_inside
from builder.pbtxt import Document, Message, offset_of
from builder.pbtxt.tokens import END, SYMBOL, tokenize


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Text in place of what stands from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file of the repository as it is (None: not there) and as it should be."""

    path: str
    before: str | None
    after: str
    codes: tuple[str, ...]

    def diff(self) -> str:
        """The change as a unified diff."""
        before = (self.before or "").splitlines(keepends=True)
        lines = difflib.unified_diff(before, self.after.splitlines(keepends=True), self.path, self.path)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def safe_changes(catalog: Catalog, findings: Iterable[Finding]) -> tuple[Change, ...]:
    """What can be corrected without asking, one change for each file."""
    by_model: dict[str, list[Finding]] = {}
    for one in findings:
        by_model.setdefault(one.model, []).append(one)
    changes = []
    for name, found in by_model.items():
        entry = catalog.entries.get(name)
        if entry is not None and entry.folder is not None:
            changes += [*_config_change(entry, found), *_version_folder(entry, found)]
    return tuple(changes)


def write_changes(repository: Path, changes: Sequence[Change]) -> None:
    """Write every change, each file at once; only files inside the repository."""
    root = Path(os.path.realpath(repository))
    for change in changes:
        path = root / change.path
        path.parent.mkdir(exist_ok=True)
        if not is_inside(path.parent, root) or path.is_symlink():
            continue
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".tritonkit-")
        with os.fdopen(handle, "wb") as file:
            file.write(change.after.encode("utf-8", "surrogateescape"))
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        os.chmod(temporary, mode)
        os.replace(temporary, path)


def _config_change(entry: Entry, findings: Iterable[Finding]) -> Iterator[Change]:
    document = entry.folder.document if entry.folder is not None else None
    if document is None or entry.file is None:
        return
    edits: dict[Edit, str] = {}
    for one in findings:
        make = _FIXES.get(one.code)
        edit = make(one, entry, document) if make is not None else None
        if edit is not None:
            edits.setdefault(edit, one.code)
    text = document.text
    done = len(text) + 1
    codes = []
    for edit in sorted(edits, key=lambda one: one.start, reverse=True):
        if edit.end <= done:  # two corrections of one place: the second waits for the next run
            text = text[: edit.start] + edit.text + text[edit.end :]
            done = edit.start
            codes.append(edits[edit])
    if text != document.text:
        yield Change(path=entry.file, before=document.text, after=text, codes=tuple(sorted(set(codes))))


def _version_folder(entry: Entry, findings: Iterable[Finding]) -> Iterator[Change]:
    if entry.is_ensemble and any(one.code == "TK801" for one in findings) and not entry.versions:
        note = "An ensemble needs a version folder, and git keeps only folders with a file in them.\n"
        yield Change(path=f"{entry.name}/1/README", before=None, after=note, codes=("TK801",))


# What stands where in a text


def _field_span(document: Document, path: Sequence[str | int]) -> tuple[int, int] | None:
    """From a field's name to behind its value; None unless the text holds exactly this field."""
    message: Any = document.config
    for part in path[:-1]:
        try:
            message = message[part]
        except (KeyError, IndexError, TypeError):
            return None
    if not isinstance(message, Message) or not isinstance(message.at.get(str(path[-1])), int):
        return None
    start = offset_of(document.config, path)
    kinds, texts, offsets = tokenize(document.text[start:])
    index, level = 1, 0
    if texts[index] == ":" and kinds[index] == SYMBOL:
        index += 1
    while kinds[index] != END:
        if kinds[index] == SYMBOL:
            level += (texts[index] in "{<[") - (texts[index] in "}>]")
        if level == 0 and not (kinds[index] == SYMBOL and texts[index] == "-"):
            return start, start + offsets[index] + len(texts[index])
        index += 1
    return None


def _removed(document: Document, path: Sequence[str | int]) -> Edit | None:
    span = _field_span(document, path)
    if span is None:
        return None
    start, end = span
    tail = re.compile(r"[ \t]*[,;]?[ \t]*\n?").match(document.text, end)
    line = document.text.rfind("\n", 0, start) + 1
    whole_line = not document.text[line:start].strip() and tail is not None and tail[0].endswith("\n")
    if whole_line and tail is not None:
        return Edit(start=line, end=tail.end(), text="")
    return Edit(start=start, end=end, text="")


def _rewritten(document: Document, path: Sequence[str | int], value: str) -> Edit | None:
    span = _field_span(document, path)
    if span is None:
        return None
    return Edit(start=span[0], end=span[1], text=f"{path[-1]}: {value}")


def _inserted(document: Document, path: Sequence[str | int], text: str) -> Edit | None:
    """A field put first into the message at `path`."""
    message: Any = document.config
    for part in path:
        message = message[part]
    if not isinstance(message, Message) or document.text[message.start : message.start + 1] not in ("{", "<"):
        return None
    at = message.start + 1
    return Edit(start=at, end=at, text=f" {text}{'' if document.text[at : at + 1] in (' ', chr(10)) else ' '}")


# The corrections, by code


def _other_name(found: Finding, entry: Entry, document: Document) -> Edit | None:
    return _rewritten(document, ("name",), f'"{entry.name}"')


def _not_on_ensembles(found: Finding, entry: Entry, document: Document) -> Edit | None:
    field = str(found.path[0])
    return _removed(document, (field,)) if isinstance(document.config.at.get(field), int) else None


def _missing_version(found: Finding, entry: Entry, document: Document) -> Edit | None:
    step = found.path[:3]
    if found.path[-1] != "model_version" or entry.ensemble_steps()[int(found.path[2])].get("model_version", 0) != 0:
        return None
    if "model_version" in document.config["ensemble_scheduling"]["step"][found.path[2]]:
        return _rewritten(document, found.path, "-1")
    return _inserted(document, step, "model_version: -1")


def _force_cpu(found: Finding, entry: Entry, document: Document) -> Edit | None:
    value = entry.config["parameters"][found.path[1]].get("string_value", "").lower()
    word = {"false": "no", "0": "no", "no": "no", "true": "yes", "1": "yes", "yes": "yes"}.get(value)
    return _rewritten(document, (*found.path, "string_value"), f'"{word}"') if word is not None else None


def _idle_platform(found: Finding, entry: Entry, document: Document) -> Edit | None:
    return _removed(document, ("platform",))


def _idle_sample(found: Finding, entry: Entry, document: Document) -> Edit | None:
    sample = document.config["model_warmup"][found.path[1]]
    if "batch_size" in sample:
        return _rewritten(document, (*found.path, "batch_size"), "1")
    return _inserted(document, found.path, "batch_size: 1")


def _negative_count(found: Finding, entry: Entry, document: Document) -> Edit | None:
    return _rewritten(document, found.path, "1")


def _nearest_in_case(found: Finding, entry: Entry, document: Document) -> Edit | None:
    """A field that differs from one of its message by case only."""
    match = re.search(r"did you mean (\w+)\?", found.found)
    word = str(found.path[-1]) if found.path else ""
    if match is None or match[1].lower() != word.lower():
        return None
    start = offset_of(document.config, found.path)
    if document.text[start : start + len(word)] != word:
        return None
    return Edit(start=start, end=start + len(word), text=match[1])


_FIXES: dict[str, Callable[[Finding, Entry, Document], Edit | None]] = {
    "TK101": _nearest_in_case,
    "TK112": _other_name,
    "TK117": _idle_platform,
    "TK131": _force_cpu,
    "TK313": _missing_version,
    "TK601": _not_on_ensembles,
    "TK706": _negative_count,
    "TK715": _idle_sample,
}
