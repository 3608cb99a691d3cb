"""The example pipeline over models of one's own, built into an empty folder and asked on the real server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clients import connect
from embedded import EmbeddedServer


@pytest.mark.server
def test_the_example_pipeline_is_built_served_and_answers(checkout: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    command = [sys.executable, "-m", "tritonkit", "build", "examples/colour/pipeline.py", "--out", str(repository)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True, timeout=60)
    with EmbeddedServer(repository, cache=checkout / ".cache") as server, connect(f"http://{server.http}") as client:
        photo = np.frombuffer((checkout / "samples" / "coffee.jpg").read_bytes(), np.uint8)
        shares = client.infer("main_colour", {"IMAGE": photo})["SHARES"].ravel()
    assert shares.sum() == pytest.approx(1)
    assert shares.argmax() == 0  # a red cup on a brown table
