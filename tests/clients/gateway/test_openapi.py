"""Schemathesis asks the real gateway whatever its own OpenAPI description allows and forbids, for some seconds.

The long run is part of `make fuzz-inputs`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from fuzz.inputs import schemathesis

pytestmark = pytest.mark.server


def test_answers_are_as_the_description_says(gateway: Any, tmp_path: Path) -> None:
    command = schemathesis(gateway.url, 1, "--phases", "fuzzing", "--max-examples", "3")
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr
    assert "Tested: 9" in found.stdout, found.stdout
