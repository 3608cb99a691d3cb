"""The pages about batches, messages and deployments name commands and options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from tritonkit.__main__ import joined


@pytest.mark.parametrize("page", ["batch", "kafka", "deploy"])
def test_commands_of_a_page_exist_with_the_options_it_names(checkout: Path, page: str) -> None:
    text = (checkout / "docs" / f"{page}.md").read_text(encoding="utf-8")
    commands_by_name = typer.main.get_group(joined()[0]).commands
    lines = [line for block in re.findall(r"```\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    lines += re.findall(r"`(tritonkit [^`]+)`", text)
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("tritonkit ")]
    assert commands
    used: set[str] = set()
    for _, name, *words in commands:
        options = {option for parameter in commands_by_name[name].params for option in parameter.opts}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= options, f"{page}.md: tritonkit {name} has no {given - options}"
        used |= options
    named = set(re.findall(r"`(--[\w-]+)", text))
    assert named <= used, f"{page}.md names {named - used}, which no command on it has"
