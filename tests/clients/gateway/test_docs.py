"""The curl lines of docs/gateway.md and of the README, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "gateway.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
EXPECTED = [
    '"content":"I was given no recording',
    '"usage":{"prompt_tokens":',
    '"detections":[{"label":"cup"',
    '"object":"text_completion"',
    "00:00:00,000 --> 00:00:07,000",
    '"box":[150.38',
    "tritonkit_gateway_requests_total",
]


def test_every_block_has_its_expectation() -> None:
    assert len(BLOCKS) == len(EXPECTED)


@pytest.mark.server
@pytest.mark.parametrize(("block", "expected"), list(zip(BLOCKS, EXPECTED, strict=False)))
def test_the_lines_of_the_documentation_work(gateway: Any, checkout: Path, block: str, expected: str) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        env={**os.environ, "GATEWAY": gateway.url},
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert expected in done.stdout


@pytest.mark.server
def test_the_lines_of_the_readme_work(gateway: Any, checkout: Path, recording: Path, picture: Path) -> None:
    """They are this file: tests/test_readme.py."""
    command = ["sh", "examples/gateway.sh", "Question: What do you hear?", str(recording), str(picture), gateway.url]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    for expected in ("I was given no recording", "00:00:00.000 --> 00:00:07.000", '"label":"cup"'):
        assert expected in done.stdout, done.stdout
