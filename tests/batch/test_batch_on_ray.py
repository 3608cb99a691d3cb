"""Ray Data mode on a real local cluster, in a network namespace of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.server
@pytest.mark.slow
def test_workers_with_servers_of_their_own_do_every_row_once(
    stand_in_module: Any, lines: Callable, checkout: Path, tmp_path: Path
) -> None:
    stand_in_module.write_repository(tmp_path / "repository")
    namespace = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    program = [sys.executable, str(PROGRAMS / "alone.py"), str(PROGRAMS / "batch_on_ray.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "TRITONKIT_CACHE": str(checkout / ".cache")}
    done = subprocess.run([*namespace, *program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"done": 200, "bad": 1}
    assert [row["id"] for row in lines(tmp_path / "out.jsonl")] == [
        f"n{number}" for number in range(200) if number != 7
    ]
    assert "prompt and messages" in lines(tmp_path / "out.jsonl.bad.jsonl")[0]["reason"]
