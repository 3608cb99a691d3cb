"""The journal of a finished batch becomes the output: JSONL or Parquet, and a side file of the rows that went wrong.

Each file appears whole or not at all; the journal goes last. A crash in between is repaired by the next run.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batch.errors import OutputError
from batch.journal import Journal

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 1024


def journal_path(out: Path) -> Path:
    """Where finished rows are kept until all are."""
    return out.with_name(out.name + ".partial")


def bad_path(out: Path) -> Path:
    """The side file of rows that could not be done."""
    return out.with_name(out.name + ".bad.jsonl")


def check_output(out: Path) -> None:
    """Raises OutputError for a place or a kind of file that can't be written, and for an output that is complete."""
    if out.suffix.lower() not in (".jsonl", ".ndjson", ".parquet"):
        raise OutputError(f"{out}: {out.suffix or 'no suffix'}; .jsonl or .parquet is needed.")
    if not out.parent.is_dir():
        raise OutputError(f"{out}: no folder {out.parent}. Make it first.")
    if out.exists() and not journal_path(out).exists():
        raise OutputError(f"{out}: already there, complete. Give another OUT, or remove it.")


def write_output(out: Path, journal: Journal, keys: Sequence[str], pipeline: str) -> None:
    """Writes OUT and its side file in the order of the keys, and removes the journal."""
    records = (record for record in journal.records(keys) if "result" in record)
    rows = ({"id": one["id"], "number": one["number"], **one["result"]} for one in records)
    if journal.bad:
        wrong = (one for one in journal.records(keys) if "reason" in one)
        write_lines(
            bad_path(out), ({"id": one["id"], "number": one["number"], "reason": one["reason"]} for one in wrong)
        )
    else:
        bad_path(out).unlink(missing_ok=True)
    if out.suffix.lower() == ".parquet":
        write_parquet(out, rows, schema(pipeline))
    else:
        write_lines(out, rows)
    journal.path.unlink()


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """One JSON document a line."""
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", errors="surrogatepass") as file:
        for value in values:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def write_parquet(path: Path, values: Iterator[dict[str, Any]], schema: "pa.Schema") -> None:
    """A Parquet file of this schema; for models that tritonkit does not know, `outputs` holds JSON."""
    import pyarrow as pa
    from pyarrow import parquet

    part = path.with_name(path.name + ".part")
    with parquet.ParquetWriter(part, schema) as writer:
        while group := list(islice(values, GROUP_ROWS)):
            if "outputs" in schema.names:
                group = [as_json(value) for value in group]
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)


def as_json(value: dict[str, Any]) -> dict[str, Any]:
    """The row with its outputs as one JSON text."""
    outputs = {name: one for name, one in value.items() if name not in ("id", "number")}
    return {"id": value["id"], "number": value["number"], "outputs": json.dumps(outputs, ensure_ascii=False)}


def schema(pipeline: str) -> "pa.Schema":
    """The columns of a pipeline's results; fixed, so that the first rows do not decide about the later ones."""
    import pyarrow as pa

    text, real, whole = pa.string(), pa.float64(), pa.int64()
    box = pa.struct([("label", text), ("score", real), ("box", pa.list_(real))])
    segment = pa.struct(
        [
            ("start_s", real),
            ("end_s", real),
            ("text", text),
            ("tokens", pa.list_(whole)),
            ("avg_logprob", real),
            ("no_speech_prob", real),
        ]
    )
    answer = [("text", text), ("finish_reason", text), ("prompt_tokens", whole), ("completion_tokens", whole)]
    picture = [("width", whole), ("height", whole), ("items", pa.list_(box))]
    columns: dict[str, list[tuple[str, Any]]] = {
        "transcribe": [("text", text), ("language", text), ("segments", pa.list_(segment))],
        "detect": picture,
        "assistant": [("transcript", text), ("detections", pa.struct(picture)), *answer],
        "llm": answer,
    }
    return pa.schema([("id", text), ("number", whole), *columns.get(pipeline, [("outputs", text)])])
