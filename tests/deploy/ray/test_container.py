"""Replicas whose Triton runs in a container. No engine runs here: the command is compared with what docker is to be
told, and the life of a replica is lived with the embedded server in docker's place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from clients import connect
from deploy.errors import DeployError
from deploy.ray.container import ContainerServer
from deploy.ray.orders import Orders
from deploy.ray.server import server_of
from embedded.docker import docker_run
from embedded.errors import CannotStart, ServerDied
from tritonkit.__main__ import joined

PROGRAMS = Path(__file__).parent / "programs"
ORDERS = Orders(repository="/models", pipelines=("echo",), gpus=2, image="tritonserver:1", env={"HF_HOME": "/hub"})


def container(orders: Orders = ORDERS, gpus: tuple[str, ...] = ("0", "3")) -> ContainerServer:
    made = server_of(orders, gpus)
    assert isinstance(made, ContainerServer)
    return made


def test_container_is_the_one_of_serve_on_the_gpus_that_ray_gave() -> None:
    made = container(Orders(**{**flat(ORDERS), "flags": ("--cuda-memory-pool-byte-size=0:9",), "shm_size": "3000m"}))
    made.ports.taken = {"http": 21000, "grpc": 21001, "metrics": 21002}
    command = made.command()
    assert command[: command.index("tritonserver:1")] == [
        *("docker", "run", "--rm", "--init", "--name", made.name, "--gpus", '"device=0,3"', "--shm-size=3000m"),
        *("--ulimit", "memlock=-1", "--ulimit", "stack=67108864"),
        *("-p", "127.0.0.1:21000:8000", "-p", "127.0.0.1:21001:8001", "-p", "127.0.0.1:21002:8002"),
        *("-v", "/models:/models:ro", "-v", "tritonkit-cache:/cache"),
        *("-e", "HF_TOKEN", "-e", "TRITONKIT_MANAGEMENT_KEY", "-e", "TRITONKIT_INFERENCE_KEY"),
        *("-e", "HF_HOME", "-e", "TRITONKIT_ENTRY=echo"),
    ]
    assert command[command.index("tritonserver:1") + 1 :] == [
        *("python3", "-m", "starter", "run", "--config-name", "gpu", "--", "tritonserver"),
        *("--cuda-memory-pool-byte-size=0:9", "--exit-timeout-secs=5"),
    ]


def flat(orders: Orders) -> dict[str, Any]:
    return {name: getattr(orders, name) for name in orders.__slots__}


def test_nvidias_own_image_gets_what_it_lacks() -> None:
    made = container(Orders(**{**flat(ORDERS), "stock": "9.9"}))
    made.ports.taken = {"http": 1, "grpc": 2, "metrics": 3}
    wanted = docker_run(
        image=made.image,
        repository=made.repository,
        host="127.0.0.1",
        ports=made.ports.taken,
        load=["echo"],
        stock="9.9",
        name=made.name,
        gpus='"device=0,3"',
        pass_on=["HF_HOME"],
        flags=["--exit-timeout-secs=5"],
    )
    assert made.command() == wanted and "onnxruntime-gpu==9.9" in " ".join(wanted)


def test_replica_without_docker_or_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotStart, match=r"docker: not found on PATH.*leave out --image for the embedded server"):
        container().__enter__()
    with pytest.raises(DeployError, match="tritonserver:1 needs a GPU, and a replica has none"):
        server_of(ORDERS, [])


def test_command_writes_the_image_its_shared_memory_and_its_gpus_into_the_config(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    out = tmp_path / "serve.yaml"
    words = ["ray", "detect", "--image", "stock-vllm", "--out", str(out)]
    done = CliRunner().invoke(joined()[0], [*words, "--gpu", "L4"])
    assert done.exit_code == 0, done.stderr
    (application,) = yaml.safe_load(out.read_text())["applications"]
    args = application["args"]
    assert "vllm" in args["image"] and args["stock"] and args["shm_size"].endswith("m")
    assert application["deployments"][0]["ray_actor_options"]["num_gpus"] == args["gpus"] == 1.0
    without = CliRunner().invoke(joined()[0], words)
    assert without.exit_code == 2 and "--image goes with --gpu" in without.stderr


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checkout: Path) -> Iterator[Path]:
    """Puts the embedded server in docker's place; the file in which its calls are."""
    found = os.pathsep.join([str(PROGRAMS / "embedded_as_docker"), str(Path(sys.executable).parent)])
    monkeypatch.setenv("PATH", f"{found}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(checkout))
    monkeypatch.setenv("DOCKER_CALLS", str(tmp_path / "docker.calls"))
    monkeypatch.chdir(checkout)
    yield tmp_path / "docker.calls"


@pytest.mark.server
def test_container_is_asked_as_the_embedded_server_and_ends_with_a_replica_that_is_killed(
    calls: Path, write_stand_ins: Any, tmp_path: Path, wait: Any
) -> None:
    repository = write_stand_ins(tmp_path / "repository")
    orders = {"repository": str(repository), "pipelines": ["echo"], "image": "x", "drain_s": 3}
    command = [sys.executable, str(PROGRAMS / "owner.py"), json.dumps(orders)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        address = owner.stdout.readline().strip()
        with connect(f"grpc://{address}") as client:
            assert client.infer("echo", {"X": np.float32([1.5])})["Y"].tolist() == [1.5]
        server = int(calls.with_suffix(".pid").read_text())
    finally:
        owner.kill()
        owner.communicate()
    wait(lambda: not Path(f"/proc/{server}").exists(), "the container outlives its replica")
    wait(lambda: calls.read_text().count("\n") >= 4, "the keeper has not ended")
    engine, run, *ends = [json.loads(line) for line in calls.read_text().splitlines()]
    assert (engine, run[0]) == (["info"], "run")
    name = run[run.index("--name") + 1]
    assert ends == [["stop", "--time", "8", name], ["rm", "--force", name]]


def test_container_that_docker_does_not_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_stand_ins: Any
) -> None:
    repository = write_stand_ins(tmp_path / "repository")
    refusing = tmp_path / "docker"  # as the engine does when there is no such image
    refusing.write_text("#!/bin/sh\n[ $1 != run ] || exit 125\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ServerDied, match=r"tritonkit-\w+ of tritonserver:1 has ended by itself"):
        container(Orders(**{**flat(ORDERS), "repository": str(repository)})).__enter__()
