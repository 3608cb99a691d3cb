"""`tritonkit demo`, as `make demo` runs it: a server of its own, three requests, the time of every step, the end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.server, pytest.mark.slow]

HEARING = {"whisper_features", "whisper_encoder", "whisper_decoder"}
SEEING = {"yolo_preprocess", "yolo", "yolo_postprocess"}


def test_the_demo_hears_sees_answers_and_times_each_step_of_each_request(checkout: Path) -> None:
    command = [sys.executable, "-m", "tritonkit", "demo", "model_repository"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    served, transcribed, detected, asked = re.split(r"(?m)^(?=transcribe |detect |ask )", done.stdout)
    assert "tritonserver ready after" in served
    assert "Mr. John Dashwood" in transcribed and steps(transcribed) == HEARING
    assert "cup 0." in detected and steps(detected) == SEEING
    assert "I see 1 cup" in asked and steps(asked) == HEARING | SEEING | {"prompt", "llm"}
    assert done.stdout.rstrip().endswith("server ended")


def steps(part: str) -> set[str]:
    """The models in the table of one request."""
    return set(re.findall(r"(?m)^(\w+) +\d+ ms +\d+ ms +\d+ ms", part))
