from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from batch.errors import InputError
from batch.sources import open_source


def rows(path: Path, pipeline: str = "llm") -> list:
    source = open_source(path, pipeline)
    found = list(source.rows())
    assert source.count == len(found)
    assert found == list(source.rows()), "two runs see the same"
    return found


def test_folder_gives_its_recordings_in_order_of_names_below_it_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b.wav", "a/z.FLAC", "notes.txt", "cat.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert [(row.key, row.id, row.fields) for row in rows(tmp_path, "transcribe")] == [
        ("a/z.FLAC", "a/z.FLAC", {"audio": "a/z.FLAC"}),
        ("b.wav", "b.wav", {"audio": "b.wav"}),
    ]


def test_folder_for_the_assistant_takes_recordings_and_pictures(tmp_path: Path) -> None:
    (tmp_path / "a.wav").touch()
    (tmp_path / "b.png").touch()
    assert [row.fields for row in rows(tmp_path, "assistant")] == [{"audio": "a.wav"}, {"image": "b.png"}]


def test_text_file_of_a_folder_is_a_prompt_and_one_in_another_encoding_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Grüß dich", encoding="utf-8")
    (tmp_path / "b.txt").write_bytes("Grüß".encode("latin-1"))
    good, bad = rows(tmp_path)
    assert good.fields == {"prompt": "Grüß dich"} and not good.problem
    assert "b.txt" in bad.problem and "utf-8" in bad.problem


def test_jsonl_skips_empty_lines_and_keeps_broken_ones_as_bad_rows(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": "x", "prompt": "a"}\n\n{"prompt": \n[1]\n{"prompt": "b"}')
    first, broken, no_object, last = rows(file)
    assert (first.id, first.fields) == ("x", {"prompt": "a"})
    assert "no JSON" in broken.problem and "object" in no_object.problem
    assert (last.key, last.id, last.fields) == ("3", "3", {"prompt": "b"})


def test_csv_keeps_line_breaks_in_cells_and_leaves_out_empty_ones(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text('﻿id,audio,language\n7,"two\nlines.wav",\n8,b.wav,en\n9,c.wav\n', encoding="utf-8")
    first, second, short = rows(file)
    assert (first.id, first.fields) == ("7", {"audio": "two\nlines.wav"})
    assert second.fields == {"audio": "b.wav", "language": "en"}
    assert "cells" in short.problem


def test_parquet_gives_bytes_and_leaves_out_nulls(tmp_path: Path) -> None:
    file = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"image": [b"\x00\xff", b"x"], "iou": [None, 0.5]}), file)
    assert [row.fields for row in rows(file)] == [{"image": b"\x00\xff"}, {"image": b"x", "iou": 0.5}]


@pytest.mark.parametrize(
    ("name", "pipeline", "words"),
    [
        ("gone", "llm", "not there"),
        ("in.txt", "llm", ".jsonl, .ndjson, .csv, .parquet or a folder"),
        (".", "transcribe", "no file that ends in"),
        (".", "echo", "can't say which input of echo"),
    ],
)
def test_input_that_is_none_is_refused_with_what_is_needed(
    tmp_path: Path, name: str, pipeline: str, words: str
) -> None:
    (tmp_path / "in.txt").touch()
    with pytest.raises(InputError, match=words):
        open_source(tmp_path / name, pipeline)


def test_mark_of_a_file_changes_with_its_first_and_last_bytes(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    marks = set()
    for text in ('{"a": 1}', '{"a": 2}', '{"a": 1} '):
        file.write_text(text)
        marks.add(open_source(file, "llm").mark)
    assert len(marks) == 3
