"""The shipped repository on a GPU: the image of docker/Dockerfile, its log, its processes.

Skipped, with what is missing, where there is no GPU, no docker engine or no image.
"""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from embedded.docker import check_docker, docker_run, read_versions
from embedded.errors import CannotStart
from embedded.ports import Ports

STARTS_S = 1800.0  # vLLM compiles and captures graphs at its first start


@dataclass(frozen=True, kw_only=True)
class GpuServer:
    """A server in a container; `http` and `grpc` are its addresses."""

    http: str
    grpc: str
    log: Path


Started = Callable[..., "contextmanager[GpuServer]"]


@pytest.fixture(scope="session")
def on_gpu(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Started:
    """Starts a server on the GPUs of this machine, verbose, and ends it: `with on_gpu(["detect"]) as server`."""
    versions = read_versions()
    try:
        check_docker(versions)
    except CannotStart as error:
        pytest.skip(str(error))

    @contextmanager
    def started(load: Sequence[str], *flags: str) -> Iterator[GpuServer]:
        ports = Ports("127.0.0.1", dict.fromkeys(("http", "grpc", "metrics"), 0))
        ports.take()
        http, grpc = ports.address("http"), ports.address("grpc")
        name = f"tritonkit-test-{os.getpid()}-{ports.taken['http']}"
        command = docker_run(
            image=versions["SERVE_IMAGE"],
            repository=checkout / "model_repository",
            host=ports.host,
            ports=ports.taken,
            load=load,
            flags=["--log-verbose=1", *flags],
            name=name,
        )
        log = tmp_path_factory.mktemp("gpu") / "server.log"
        with log.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            _wait(process, f"http://{http}/v2/models/{load[0]}/ready", log)
            yield GpuServer(http=http, grpc=grpc, log=log)
        finally:
            subprocess.run(["docker", "stop", "--time", "30", name], capture_output=True)
            process.wait(60)
            ports.release()

    return started


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end_s = time.monotonic() + STARTS_S
    while time.monotonic() < end_s:
        if process.poll() is not None:
            pytest.fail(f"the container ended with {process.returncode}:\n{log.read_text()[-4000:]}")
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    pytest.fail(f"not ready within {STARTS_S:.0f} s:\n{log.read_text()[-4000:]}")
