"""The page about GPUs: its commands run as they stand, and its code is Python that works."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from builder import DeclarationError
from builder.__main__ import app


@pytest.fixture
def page(checkout) -> str:
    return (checkout / "docs" / "gpu.md").read_text(encoding="utf-8")


def test_its_commands_run(page, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "tritonkit"
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{line}\n{done.output}"
    assert (tmp_path / "plan.env").exists() and (tmp_path / "repository" / "llm" / "1" / "model.json").exists()


def test_its_code_is_right_but_for_files_that_nobody_has(page):
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    told = []
    for block in blocks:
        try:
            exec(compile(block, "docs/gpu.md", "exec"), {})
        except DeclarationError as error:
            told.append(error.found)
    assert len(told) == 3 and all(re.match(r"there is no (file|model\.py)", one) for one in told)
