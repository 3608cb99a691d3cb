"""The same repository on GPUs: the `docker run` command of NVIDIA's server, from the pinned versions."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from embedded.errors import CannotStart

DOCKER_FOLDER = Path(__file__).parent.parent / "docker"
# Where the ports end inside the container.
CONTAINER_PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002}


def read_versions(path: Path = DOCKER_FOLDER / "versions.env") -> dict[str, str]:
    """The pinned versions: NAME=value lines.

    Raises:
        CannotStart: the file is not there.
    """
    if not path.is_file():
        raise CannotStart(f"{path}: no such file; it pins the image. Run this from a checkout of tritonkit.")
    lines = (line.strip() for line in path.read_text().splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def docker_run(
    *,
    image: str,
    repository: Path,
    host: str,
    ports: Mapping[str, int],
    load: Sequence[str] | None,
    shm_size: str = "2g",
    flags: Sequence[str] = (),
) -> list[str]:
    """The command: all GPUs, the repository read-only, ports on `host`, the `gpu` profile where a model has one."""
    publish = [
        part for endpoint, port in ports.items() for part in ("-p", f"{host}:{port}:{CONTAINER_PORTS[endpoint]}")
    ]
    control = [] if load is None else ["--model-control-mode=explicit", *(f"--load-model={name}" for name in load)]
    return [
        *("docker", "run", "--rm", "--init"),
        *("--gpus", "all", f"--shm-size={shm_size}", "--ulimit", "memlock=-1", "--ulimit", "stack=67108864"),
        *publish,
        *("-v", f"{repository.resolve()}:/models:ro"),
        image,
        *("tritonserver", "--model-repository=/models", "--model-config-name=gpu"),
        *control,
        *flags,
    ]


def build_command(versions: Mapping[str, str]) -> list[str]:
    """The command that builds the image."""
    arguments = [
        part
        for name in ("TRITON_VLLM_IMAGE", "TRITON_FULL_IMAGE")
        for part in ("--build-arg", f"{name}={versions[name]}")
    ]
    return ["docker", "build", "-t", versions["SERVE_IMAGE"], *arguments, str(DOCKER_FOLDER)]


def check_docker(versions: Mapping[str, str]) -> None:
    """Return if this machine can run the image.

    Raises:
        CannotStart: no docker engine, no GPU, or no image.
    """
    if shutil.which("docker") is None:
        raise CannotStart("docker: not found on PATH; a docker engine is needed. Install it, or serve without --gpu.")
    engine = subprocess.run(["docker", "info"], capture_output=True, text=True)
    if engine.returncode:
        words = engine.stderr.strip().splitlines()[-1:] or ["no answer"]
        raise CannotStart(f"docker: the engine does not answer ({words[0]}). Start it, or serve without --gpu.")
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        raise CannotStart("no NVIDIA GPU on this machine (/dev/nvidia0 is missing). Serve without --gpu.")
    if subprocess.run(["docker", "image", "inspect", versions["SERVE_IMAGE"]], capture_output=True).returncode:
        raise CannotStart(f"{versions['SERVE_IMAGE']}: not built yet. Build it: {shlex.join(build_command(versions))}")
