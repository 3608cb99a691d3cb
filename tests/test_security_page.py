"""docs/security.md names a test for each of its lines; all of them must be there."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
LINES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| danger", "| ---"))]


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_every_test_that_the_page_names_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_line_of_the_page_names_a_test() -> None:
    assert len(LINES) > 10
    assert all("::test_" in line for line in LINES)


def test_no_model_trusts_code_that_comes_with_its_weights() -> None:
    settings = list((ROOT / "model_repository").glob("*/*/model.json"))
    assert settings
    for file in settings:
        assert not json.loads(file.read_text(encoding="utf-8")).get("trust_remote_code"), file
    sources = [file for name in ("builder", "weights", "model_repository") for file in (ROOT / name).rglob("*.py")]
    found = [file for file in sources if "trust_remote_code=True" in file.read_text(encoding="utf-8").replace(" ", "")]
    assert not found
