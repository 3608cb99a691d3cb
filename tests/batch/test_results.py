import json
from pathlib import Path

import pytest
from pyarrow import parquet

from batch.errors import OutputError
from batch.journal import Journal
from batch.results import bad_path, check_output, journal_path, write_output
from batch.rows import Row


def filled(out: Path) -> Journal:
    journal = Journal(journal_path(out), {})
    with journal:
        for number in (2, 0, 1):
            row = Row(key=str(number), number=number, id=f"r{number}", fields={})
            if number == 1:
                journal.add_bad(row, "no")
            else:
                journal.add(row, {"Y": [number + 0.5], "T": ["é"]})
    return journal


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_output_has_the_order_of_the_keys_and_the_bad_rows_aside(tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    write_output(out, filled(out), ["0", "1", "2"], "echo")
    if name == "out.jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = [{**row, **json.loads(row["outputs"])} for row in parquet.read_table(out).to_pylist()]
    assert [(row["id"], row["Y"], row["T"]) for row in rows] == [("r0", [0.5], ["é"]), ("r2", [2.5], ["é"])]
    assert json.loads(bad_path(out).read_text()) == {"id": "r1", "number": 1, "reason": "no"}
    assert sorted(file.name for file in tmp_path.iterdir()) == [name, f"{name}.bad.jsonl"]


def test_writing_that_was_cut_off_is_done_again_from_the_journal(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    journal = filled(out)
    kept = journal.path.read_bytes()
    write_output(out, journal, ["0", "1", "2"], "echo")
    whole = out.read_bytes()
    journal.path.write_bytes(kept)  # as if the process had been killed before it removed the journal
    out.write_bytes(b"")
    check_output(out)
    write_output(out, filled(out), ["0", "1", "2"], "echo")
    assert out.read_bytes() == whole


@pytest.mark.parametrize(
    ("name", "words"), [("out.txt", r"\.jsonl or \.parquet"), ("no/out.jsonl", "no folder"), ("there.jsonl", "already")]
)
def test_place_that_cannot_be_written_is_refused_before_anything_is_done(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "there.jsonl").touch()
    with pytest.raises(OutputError, match=words):
        check_output(tmp_path / name)
