"""What a row's fields may be; asked without a server, since nothing of a refused row is sent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from batch.calls import Caller, number_or_text
from batch.errors import RowError


def refusal(pipeline: str, fields: dict[str, Any], base: Path | None, **how: Any) -> str:
    with pytest.raises(RowError) as caught:
        asyncio.run(Caller(None, pipeline, base=base, **how)(fields))  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.parametrize(
    ("pipeline", "fields", "words"),
    [
        ("transcribe", {}, "no field audio"),
        ("transcribe", {"audio": "gone.wav"}, "no file gone.wav"),
        ("transcribe", {"audio": 7}, "audio: a int; a path, bytes"),
        ("transcribe", {"audio": b"x", "langauge": "en"}, "no field langauge; audio, language, task, mode"),
        ("detect", {"image": {"base64": "%%%"}}, "image: .*base64"),
        ("detect", {"image": {"url": "http://x"}}, "an object with url"),
        ("llm", {}, "exactly one of the fields prompt and messages"),
        ("llm", {"prompt": "a", "messages": []}, "exactly one"),
        ("llm", {"messages": "[{"}, "messages: .*JSON is needed"),
    ],
)
def test_fields_that_no_pipeline_takes_are_refused_by_name(
    tmp_path: Path, pipeline: str, fields: dict[str, Any], words: str
) -> None:
    import re

    assert re.search(words, refusal(pipeline, fields, tmp_path))


def test_strangers_reach_no_file_outside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.wav").touch()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.wav").symlink_to(tmp_path / "secret.wav")
    for path in ("../secret.wav", str(tmp_path / "secret.wav"), "link.wav"):
        assert "leaves the folder" in refusal("transcribe", {"audio": path}, tmp_path / "in", only_below=True)
    assert "paths are not accepted" in refusal("transcribe", {"audio": "link.wav"}, None)


@pytest.mark.parametrize(
    ("cell", "meant"),
    [("0.5", 0.5), ("7", 7), ("[1]", [1]), ("true", True), ("null", "null"), ('"7"', '"7"'), ("a", "a")],
)
def test_cell_of_a_table_means_a_number_where_it_is_one(cell: str, meant: Any) -> None:
    assert number_or_text(cell) == meant
