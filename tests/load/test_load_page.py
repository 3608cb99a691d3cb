"""The code of the page on load runs: its commands are understood, its Python is run against a server."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from load.__main__ import app

PAGE = (Path(__file__).parents[2] / "docs" / "load.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^tritonkit load .*$", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_understood(line: str) -> None:
    arguments = shlex.split(line)[1:]
    with get_command(app).make_context("tritonkit", arguments, resilient_parsing=False) as context:
        name, command, rest = context.command.resolve_command(context, arguments)  # type: ignore[attr-defined]
        assert name == "load" and command.make_context(name, rest, parent=context).params["model"] == arguments[1]


@pytest.mark.server
def test_the_python_of_the_page_runs(served: Any) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    for written, here in (("127.0.0.1:8001", served.grpc), ("seconds=30", "seconds=1"), ("per_s=20", "per_s=4")):
        assert written in code
        code = code.replace(written, here)
    found: dict[str, Any] = {}
    exec(compile(code, "docs/load.md", "exec"), found)
    assert found["result"].right and not found["result"].error_rate
