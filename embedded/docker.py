"""The same repository on GPUs: the `docker run` command of NVIDIA's server, from the pinned versions."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import shipped
from embedded.errors import CannotStart
from starter.keys import INFERENCE_KEY, MANAGEMENT_KEY

DOCKER_FOLDER = shipped.ROOT / "docker"
# Where the ports end inside the container.
CONTAINER_PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002}
BUILD_ARGUMENTS = ("TRITON_VLLM_IMAGE", "TRITON_FULL_IMAGE", "PYTHON_IMAGE", "ONNXRUNTIME_GPU_VERSION")
# Kept in the volume, so that the second start installs nothing. A .pth file names it, because the models' processes are
# isolated interpreters: they pass over PYTHONPATH (seen on 2.51).
STOCK_START = (
    "[ -d /cache/packages/onnxruntime_gpu-{version}.dist-info ] || "
    "python3 -m pip install --quiet --no-deps --upgrade --target /cache/packages onnxruntime-gpu=={version} && "
    "echo /cache/packages > \"$(python3 -c 'import site; print(site.getsitepackages()[0])')/tritonkit.pth\" && "
    'PYTHONPATH=/opt/tritonkit exec python3 -m starter "$@"'
)
# A stock image has none of its own: the entry models must answer, as in docker/Dockerfile.
STOCK_HEALTH = (
    "--health-cmd=PYTHONPATH=/opt/tritonkit python3 -m starter check",
    *("--health-interval=10s", "--health-timeout=5s", "--health-start-period=30m"),
)
# Taken over from our environment, by name only: their values stand in no command line.
PASSED_ON = ("HF_TOKEN", MANAGEMENT_KEY, INFERENCE_KEY)


def read_versions(path: Path = shipped.VERSIONS) -> dict[str, str]:
    """The pinned versions: NAME=value lines.

    Raises:
        CannotStart: the file is not there.
    """
    if not path.is_file():
        raise CannotStart(f"{path}: no such file; versions of images, or the sizes of a plan, are needed there.")
    lines = (line.strip() for line in path.read_text().splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What a memory plan says of a server: /dev/shm, and flags for its pools."""

    shm_size: str = "2g"
    flags: tuple[str, ...] = ()


def planned(plan: Mapping[str, str]) -> Sizes:
    """The sizes of a plan, by the names in its file; what it does not say stays as it is without one."""
    flags = []
    for name, value in plan.items():
        if name == "CUDA_POOLS":
            flags += [f"--cuda-memory-pool-byte-size={pool}" for pool in value.split(",")]
        elif name == "PINNED_POOL_BYTES":
            flags.append(f"--pinned-memory-pool-byte-size={value}")
    return Sizes(shm_size=plan.get("SHM_SIZE", Sizes().shm_size), flags=tuple(flags))


def docker_run(
    *,
    image: str,
    repository: Path,
    host: str,
    ports: Mapping[str, int],
    load: Sequence[str] | None,
    shm_size: str = "2g",
    flags: Sequence[str] = (),
    stock: str | None = None,
    name: str = "",
    gpus: str = "all",
    pass_on: Sequence[str] = (),
) -> list[str]:
    """The command: all GPUs, the repository read-only, ports on `host`, the `gpu` profile where a model has one.

    In the container the program `starter` loads the models one at a time, the language model last.

    Args:
        name: of the container; docker makes one up if empty.
        gpus: which of them, as docker takes it.
        pass_on: further variables of our environment, by name.
        stock: version of onnxruntime-gpu to install at the start, where `image` is NVIDIA's own with vLLM and no ONNX
            backend: ours is mounted, and `starter`, too.
    """
    publish = [
        part for endpoint, port in ports.items() for part in ("-p", f"{host}:{port}:{CONTAINER_PORTS[endpoint]}")
    ]
    secrets = [part for one in (*PASSED_ON, *pass_on) for part in ("-e", one)]
    return [
        *("docker", "run", "--rm", "--init", *(("--name", name) if name else ())),
        *("--gpus", gpus, f"--shm-size={shm_size}", "--ulimit", "memlock=-1", "--ulimit", "stack=67108864"),
        *publish,
        *("-v", f"{repository.resolve()}:/models:ro", "-v", "tritonkit-cache:/cache"),
        *secrets,
        *("-e", f"TRITONKIT_ENTRY={','.join(load or ())}"),  # what it loads, and what its health check asks for
        *((*stock_mounts(), *STOCK_HEALTH) if stock else ()),
        image,
        *(("bash", "-c", STOCK_START.format(version=stock), "starter") if stock else ("python3", "-m", "starter")),
        *("run", "--config-name", "gpu"),
        *("--", "tritonserver"),
        *flags,
    ]


def stock_mounts() -> list[str]:
    """What NVIDIA's image lacks, mounted read-only: the ONNX backend in Python, and `starter`."""
    root = DOCKER_FOLDER.parent
    backend = "/opt/tritonserver/backends/onnxruntime"
    return [
        *("-v", f"{root / 'embedded' / 'backends' / 'onnxruntime'}:{backend}:ro"),
        *("-v", f"{root / 'starter'}:/opt/tritonkit/starter:ro"),
        *("-e", "ORT_DISABLE_TELEMETRY=1", "-e", "HF_HOME=/cache/huggingface", "-e", "VLLM_CACHE_ROOT=/cache/vllm"),
    ]


def build_command(versions: Mapping[str, str], target: str = "server") -> list[str]:
    """The command that builds an image: the server's, or the gateway's."""
    arguments = [part for name in BUILD_ARGUMENTS for part in ("--build-arg", f"{name}={versions[name]}")]
    name = versions[{"server": "SERVE_IMAGE", "gateway": "GATEWAY_IMAGE", "worker": "WORKER_IMAGE"}[target]]
    file = DOCKER_FOLDER / "Dockerfile"
    return ["docker", "build", "-t", name, "--target", target, "-f", str(file), *arguments, str(DOCKER_FOLDER.parent)]


def check_engine(otherwise: str = "serve without --gpu") -> None:
    """Return if there is a docker engine that answers.

    Raises:
        CannotStart: no docker, or no answer; with what else there is to do.
    """
    if shutil.which("docker") is None:
        raise CannotStart(f"docker: not found on PATH; a docker engine is needed. Install it, or {otherwise}.")
    engine = subprocess.run(["docker", "info"], capture_output=True, text=True)
    if engine.returncode:
        words = engine.stderr.strip().splitlines()[-1:] or ["no answer"]
        raise CannotStart(f"docker: the engine does not answer ({words[0]}). Start it, or {otherwise}.")


def check_docker(versions: Mapping[str, str], *, stock: bool = False) -> None:
    """Return if this machine can run the image; a stock one is fetched by docker itself.

    Raises:
        CannotStart: no docker engine, no GPU, or no image.
    """
    check_engine()
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        raise CannotStart("no NVIDIA GPU on this machine (/dev/nvidia0 is missing). Serve without --gpu.")
    if stock:
        return
    if subprocess.run(["docker", "image", "inspect", versions["SERVE_IMAGE"]], capture_output=True).returncode:
        raise CannotStart(f"{versions['SERVE_IMAGE']}: not built yet. Build it: {shlex.join(build_command(versions))}")
