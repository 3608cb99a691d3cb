"""No field case is forgotten: each of `ids.txt` is named by a test, in its docstring, its name or its table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__)
ID = re.compile(r"\b(?:ENS|BAT|INS|PYB|VLL|WHI|YOL|CLI|DEP)-\d{2}\b")
KNOWN = [line.split(" ", 1)[0] for line in HERE.with_name("ids.txt").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def named() -> dict[str, list[str]]:
    """For each id the test files that name it."""
    found: dict[str, list[str]] = {}
    tests = HERE.parents[2]
    for file in (HERE.with_name("table.py"), *sorted(tests.rglob("test_*.py"))):
        if file != HERE:
            for one in set(ID.findall(file.read_text(encoding="utf-8"))):
                found.setdefault(one, []).append(str(file.relative_to(tests)))
    return found


def test_there_are_56_cases() -> None:
    assert len(KNOWN) == len(set(KNOWN)) == 56
    assert all(ID.fullmatch(one) for one in KNOWN)


@pytest.mark.parametrize("case", KNOWN)
def test_a_test_names_the_case(case: str, named: dict[str, list[str]]) -> None:
    assert named.get(case), f"no test names {case}"


def test_no_test_names_a_case_that_is_none(named: dict[str, list[str]]) -> None:
    assert set(named) <= set(KNOWN), named
