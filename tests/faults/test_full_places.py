"""A disk that is full while a repository is built, and shared memory that is full while a server answers.

Both are small file systems of the test's own, which take root and a kernel that lets it mount.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from clients import ClientError, connect

ROOT = Path(__file__).parents[2]
ECHO = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", one.as_numpy())])
                for one in (pb_utils.get_input_tensor_by_name(request, "X") for request in requests)]
"""
CONFIG = """
backend: "python"
input [{name: "X" data_type: TYPE_FP32 dims: [-1]}]
output [{name: "Y" data_type: TYPE_FP32 dims: [-1]}]
instance_group [{kind: KIND_CPU}]
"""
IN_SMALL_SHM = 'mount -t tmpfs -o size=96m tmpfs /dev/shm && exec "$@"'


def why_not() -> str:
    """Why no file system can be mounted here, "" if it can."""
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm"], capture_output=True, text=True
    )
    return "" if tried.returncode == 0 else f"needs to mount a tmpfs: {tried.stderr.strip() or 'not allowed'}"


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """2 MB, of which a repository without weights takes a little."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def build(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tritonkit", "build", "detect", "--out", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100)


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (one for one in folder.rglob("*") if one.is_file())
    return {str(one.relative_to(folder)): (one.read_bytes(), one.stat().st_mtime_ns) for one in files}


def test_a_full_disk_leaves_the_repository_as_it_was(small_disk: Path) -> None:
    if not (ROOT / ".cache" / "exports").is_dir():
        pytest.skip("needs exported weights: make build-repo")
    out = small_disk / "repository"
    built = build(out, "--no-weights")
    assert built.returncode == 0, built.stderr
    before = tree(small_disk)
    refused = build(out)
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert "No space left on device" in refused.stderr and "the folder is as it was" in refused.stderr
    assert tree(small_disk) == before and list(small_disk.iterdir()) == [out]


@pytest.mark.server
def test_full_shared_memory_fails_one_request_and_not_the_next(tmp_path: Path) -> None:
    version = tmp_path / "repository" / "echo" / "1"
    version.mkdir(parents=True)
    version.with_name("config.pbtxt").write_text(CONFIG)
    (version / "model.py").write_text(ECHO)
    serve = [sys.executable, "-m", "tritonkit", "serve", str(tmp_path / "repository")]
    ports = ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--log", str(tmp_path / "server.log")]
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", IN_SMALL_SHM, "sh", *serve, *ports],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ},
    ) as server:
        try:
            assert server.stdout
            found = next(found for line in server.stdout if (found := re.search(r"gRPC\s+(\S+)", line)))
            with connect(f"grpc://{found[1]}", timeout_s=30) as client:
                small = np.arange(1000, dtype=np.float32)
                assert np.array_equal(client.infer("echo", {"X": small})["Y"], small)
                with pytest.raises(ClientError, match="shared memory"):
                    client.infer("echo", {"X": np.zeros(40_000_000, dtype=np.float32)})
                for _ in range(20):
                    assert np.array_equal(client.infer("echo", {"X": small})["Y"], small)
        finally:
            server.terminate()
            server.wait(30)
