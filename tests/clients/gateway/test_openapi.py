"""Schemathesis asks the real gateway whatever its own OpenAPI description allows and forbids, for some seconds.

The long run is `make fuzz-gateway`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.server

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
)


def test_answers_are_as_the_description_says(gateway: Any, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("st")), "run", f"{gateway.url}/openapi.json", "--seed", "1"]
    phases = ["--phases", "coverage,fuzzing", "--max-examples", "10", "--max-time", "6", "--request-timeout", "60"]
    found = subprocess.run(
        [*command, *phases, "--checks", ",".join(CHECKS), "--no-color"], capture_output=True, text=True, cwd=tmp_path
    )
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr
    assert "Tested: 9" in found.stdout, found.stdout
