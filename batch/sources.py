"""An input on disk comes in; its rows go out, always in the same order, and how many they are.

A folder gives one row per recording, picture or text file. A table (JSONL, CSV, Parquet) gives one per line, its
columns are the fields. Nothing is read before it is asked for: a Parquet file of any size needs one batch of memory.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batch.errors import InputError
from batch.rows import Row

SUFFIXES = {
    "audio": {".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aiff", ".aif", ".m4a", ".webm"},
    "image": {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"},
    "prompt": {".txt", ".md"},
}
# What a file in a folder is to a pipeline; `assistant` takes a recording or a picture, whichever the file is.
FOLDER_FIELDS = {
    "transcribe": ("audio",),
    "detect": ("image",),
    "assistant": ("audio", "image"),
    "llm": ("prompt",),
}
EDGE_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An input: `base` is the folder that relative paths in it start from, `mark` changes when the input does."""

    path: Path
    base: Path
    count: int
    mark: str
    rows: Callable[[], Iterator[Row]]


def open_source(path: Path, pipeline: str) -> Source:
    """The input at `path`.

    Raises:
        InputError: nothing there, or nothing of a kind that is known.
    """
    if path.is_dir():
        return _folder(path, pipeline)
    if not path.is_file():
        raise InputError(f"{path}: not there. Give a folder, or a .jsonl, .csv or .parquet file.")
    readers = {".jsonl": _jsonl, ".ndjson": _jsonl, ".csv": _csv, ".parquet": _parquet}
    if path.suffix.lower() not in readers:
        raise InputError(f"{path}: {path.suffix or 'no suffix'}; {', '.join(readers)} or a folder is needed.")
    return readers[path.suffix.lower()](path)


def _folder(path: Path, pipeline: str) -> Source:
    wanted = FOLDER_FIELDS.get(pipeline)
    if wanted is None:
        raise InputError(f"{path}: a folder can't say which input of {pipeline} its files are. Give a JSONL file.")
    kinds = {suffix: field for field in wanted for suffix in SUFFIXES[field]}
    files = sorted(one for one in path.rglob("*") if one.suffix.lower() in kinds and one.is_file())
    if not files:
        raise InputError(f"{path}: no file that ends in one of {' '.join(sorted(kinds))}.")

    def rows() -> Iterator[Row]:
        for number, file in enumerate(files):
            name, field = file.relative_to(path).as_posix(), kinds[file.suffix.lower()]
            if field != "prompt":
                yield Row(key=name, number=number, id=name, fields={field: name})
                continue
            try:
                yield Row(key=name, number=number, id=name, fields={field: file.read_text(encoding="utf-8")})
            except (OSError, UnicodeDecodeError) as error:
                yield Row(key=name, number=number, id=name, fields={}, problem=f"{name}: {error}")

    # Rows are known by their names: files may be added between two runs.
    return Source(path=path, base=path, count=len(files), mark="folder", rows=rows)


def _jsonl(path: Path) -> Source:
    with path.open("rb") as file:
        count = sum(1 for line in file if line.strip())

    def rows() -> Iterator[Row]:
        with path.open("rb") as file:
            for number, line in enumerate(line for line in file if line.strip()):
                yield _from_json(number, line)

    return Source(path=path, base=path.parent, count=count, mark=mark_of(path), rows=rows)


def _from_json(number: int, line: bytes) -> Row:
    try:
        fields = json.loads(line)
    except ValueError as error:
        return Row(key=str(number), number=number, id=str(number), fields={}, problem=f"no JSON: {error}")
    if not isinstance(fields, dict):
        return Row(key=str(number), number=number, id=str(number), fields={}, problem="a JSON object is needed")
    return _row(number, fields)


def _csv(path: Path) -> Source:
    def rows() -> Iterator[Row]:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            for number, fields in enumerate(reader):
                if None in fields or None in fields.values():
                    problem = f"line {reader.line_num}: not as many cells as the heading has"
                    yield Row(key=str(number), number=number, id=str(number), fields={}, problem=problem)
                else:
                    # An empty cell is a field that was not given: CSV has no other way to say so.
                    yield _row(number, {name: cell for name, cell in fields.items() if cell != ""})

    return Source(path=path, base=path.parent, count=sum(1 for _ in rows()), mark=mark_of(path), rows=rows)


def _parquet(path: Path) -> Source:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            count = file.metadata.num_rows
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: no Parquet file: {error}") from error

    def rows() -> Iterator[Row]:
        number = 0
        with parquet.ParquetFile(path) as file:
            for group in file.iter_batches(batch_size=256):
                for fields in group.to_pylist():
                    yield _row(number, {name: value for name, value in fields.items() if value is not None})
                    number += 1

    return Source(path=path, base=path.parent, count=count, mark=mark_of(path), rows=rows)


def _row(number: int, fields: Mapping[str, Any]) -> Row:
    rest = {name: value for name, value in fields.items() if name != "id"}
    return Row(key=str(number), number=number, id=str(fields.get("id", number)), fields=rest)


def mark_of(path: Path) -> str:
    """A short text that changes when a file does: its size, its first and its last mebibyte."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(EDGE_BYTES))
        file.seek(max(0, size - EDGE_BYTES))
        digest.update(file.read())
    return digest.hexdigest()[:16]
