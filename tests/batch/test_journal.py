import json
from pathlib import Path

import pytest

from batch.errors import OutputError
from batch.journal import Journal
from batch.rows import Row


def row(number: int) -> Row:
    return Row(key=f"k{number}", number=number, id=f"row {number}", fields={})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal(tmp_path / "journal", {"pipeline": "llm"}) as journal:
        journal.add(row(0), {"text": "ein Wörtchen"})
        journal.add_bad(row(1), "no such file")
        journal.add(row(2), {"text": "x\ny"})
    return tmp_path / "journal"


def test_rows_come_back_in_the_order_asked_for(path: Path) -> None:
    with Journal(path, {"pipeline": "llm"}) as journal:
        found = list(journal.records(["k2", "k1", "k0"]))
        assert [one.get("result", one.get("reason")) for one in found] == [
            {"text": "x\ny"},
            "no such file",
            {"text": "ein Wörtchen"},
        ]
        assert (len(journal.done), journal.bad) == (3, 1)


def test_every_cut_of_the_file_is_read_as_the_rows_that_are_whole_and_can_be_gone_on_with(path: Path) -> None:
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with Journal(path, {"pipeline": "llm"}) as journal:
            assert len(journal.done) == max(0, sum(end <= cut for end in ends) - 1)
            journal.add(row(9), {"text": "after"})
        lines = path.read_bytes().splitlines()
        assert json.loads(lines[-1])["key"] == "k9" and all(json.loads(line) for line in lines)


def test_journal_of_another_batch_is_refused_with_both_named(path: Path) -> None:
    with pytest.raises(OutputError, match='another batch.*"llm".*"detect"'), Journal(path, {"pipeline": "detect"}):
        pass


def test_second_process_is_told_to_wait(path: Path) -> None:
    with (
        Journal(path, {"pipeline": "llm"}),
        pytest.raises(OutputError, match="another process"),
        Journal(path, {"pipeline": "llm"}),
    ):
        pass
