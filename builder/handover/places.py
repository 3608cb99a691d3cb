"""Where a model takes its inputs and leaves its outputs: on the host, or on which GPU.

In: a model's config for one profile. Out: an `Abode`. What NVIDIA's backends do with memory, from their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from builder.catalog import Entry, Target

HOST = -1
FORCE = "FORCE_CPU_ONLY_INPUT_TENSORS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abode:
    """Where a model works.

    Attributes:
        backend: `onnxruntime`, `python`, `tensorrt`; `caller` for the one who asks.
        gpu: number of its GPU; `HOST` for none.
        takes_device: whether its inputs may lie on the device.
        gives_device: whether its outputs lie on the device.
        process: whether it runs in a process of its own, which costs copies through shared memory.
        batches: whether several requests may become one batch, which costs a gather.
    """

    backend: str
    gpu: int = HOST
    takes_device: bool = False
    gives_device: bool = False
    process: bool = False
    batches: bool = False


CALLER = Abode(backend="caller")


def abode_of(entry: Entry, *, embedded: bool = False) -> Abode:
    """Where a model works; `embedded` for the server whose ONNX backend is a Python one."""
    config = entry.config
    backend = backend_name(config)
    gpus = gpus_of(config)
    batches = int(config.get("max_batch_size", 0)) > 1 and "dynamic_batching" in config
    if backend == "python" or (embedded and backend == "onnxruntime"):
        open_to_device = parameter(config, FORCE) == "no" and bool(gpus)
        return Abode(
            backend="python" if backend == "python" else "onnxruntime",
            gpu=gpus[0] if gpus else HOST,
            takes_device=open_to_device,
            gives_device=open_to_device,
            process=True,
            batches=batches,
        )
    if backend == "vllm":
        return Abode(backend=backend, gpu=gpus[0] if gpus else HOST, process=True)
    return Abode(
        backend=backend,
        gpu=gpus[0] if gpus else HOST,
        takes_device=bool(gpus),
        gives_device=bool(gpus),
        batches=batches,
    )


def runs_onnx_in_python(target: Target) -> bool:
    """Whether a server's ONNX backend is tritonkit's own, a process for each instance."""
    return target.image in ("embedded", "stock-vllm")


def backend_name(config: Mapping[str, Any]) -> str:
    """A config's backend, from the platform where it names that instead."""
    platform = str(config.get("platform") or "")
    return str(config.get("backend") or {"onnxruntime_onnx": "onnxruntime", "tensorrt_plan": "tensorrt"}.get(platform))


def gpus_of(config: Mapping[str, Any]) -> tuple[int, ...]:
    """GPUs of a model's instances, each as often as it has instances there; the first for KIND_MODEL."""
    found: list[int] = []
    for group in config.get("instance_group", ()):
        if group.get("kind") == "KIND_GPU":
            found += [gpu for gpu in (group.get("gpus") or (0,)) for _ in range(int(group.get("count", 1)))]
        elif group.get("kind") == "KIND_MODEL":
            found += [0] * int(group.get("count", 1))
    return tuple(found)


def instances_of(config: Mapping[str, Any]) -> int:
    """How many instances a model has."""
    groups = config.get("instance_group", ())
    return sum(int(one.get("count", 1)) * max(1, len(one.get("gpus") or ())) for one in groups) or 1


def parameter(config: Mapping[str, Any], name: str) -> str:
    """A string of `parameters`; empty where there is none."""
    value = config.get("parameters", {}).get(name, {})
    return str(value.get("string_value", "") if isinstance(value, Mapping) else value)
