"""Where a model takes its inputs and leaves its outputs: on the host, or on which GPU.

In: a model's config for one profile. Out: an `Abode`. What NVIDIA's backends do with memory, from their sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.catalog import Entry, Target

HOST = -1
FORCE = "FORCE_CPU_ONLY_INPUT_TENSORS"
# A parameter of ours: which outputs of a Python model with an instance on a GPU lie there, by names, or `none`.
DEVICE_OUTPUTS = "device_outputs"
_ON_EVERY_GPU = ("python", "onnxruntime", "tensorrt", "pytorch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Abode:
    """Where a model works.

    Attributes:
        backend: `onnxruntime`, `python`, `tensorrt`; `caller` for the one who asks.
        gpu: number of its GPU; `HOST` for none.
        takes_device: whether its inputs may lie on the device.
        gives_device: whether its outputs lie on the device, at least those in `given`.
        given: names of the outputs that do, where not all do.
        process: whether it runs in a process of its own, which costs copies through shared memory.
        batches: whether several requests may become one batch, which costs a gather.
    """

    backend: str
    gpu: int = HOST
    takes_device: bool = False
    gives_device: bool = False
    given: tuple[str, ...] | None = None
    process: bool = False
    batches: bool = False

    @property
    def is_on_gpu(self) -> bool:
        """Whether it has an instance on a GPU."""
        return self.gpu != HOST

    def leaves_on_device(self, output: str) -> bool:
        """Whether this output lies on the device."""
        return self.gives_device and (self.given is None or output in self.given)


CALLER = Abode(backend="caller")


def abode_of(entry: Entry, *, embedded: bool = False, devices: int = 0) -> Abode:
    """Where a model works; `embedded` for the server whose ONNX backend is a Python one, `devices` as in `gpus_of`."""
    config = entry.config
    backend = backend_name(config)
    gpus = gpus_of(config, devices)
    batches = int(config.get("max_batch_size", 0)) > 1 and "dynamic_batching" in config
    if backend == "python" or (embedded and backend == "onnxruntime"):
        takes = parameter(config, FORCE) == "no" and bool(gpus)
        told = parameter(config, DEVICE_OUTPUTS)
        given = tuple(name for name in told.split() if name != "none") if told else None
        return Abode(
            backend="python" if backend == "python" else "onnxruntime",
            gpu=gpus[0] if gpus else HOST,
            takes_device=takes,
            # without a word of its own, one that takes tensors on the device is thought to give them there, too
            gives_device=bool(gpus) and (takes if given is None else bool(given)),
            given=given,
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


def gpus_of(config: Mapping[str, Any], devices: int = 0) -> tuple[int, ...]:
    """GPUs of a model's instances, each as often as it has instances there; the first for KIND_MODEL.

    `devices` is how many GPUs the server sees: a group that names no kind, or no GPU, has instances on each of them.
    """
    return tuple(gpu for group in _groups(config) for gpu in _gpus_of_group(group, backend_name(config), devices))


def instances_of(config: Mapping[str, Any], devices: int = 0) -> int:
    """How many instances a model has, where the server sees so many GPUs."""
    backend = backend_name(config)
    return sum(len(_gpus_of_group(one, backend, devices)) or int(one.get("count", 1)) for one in _groups(config))


def _groups(config: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return config.get("instance_group") or ({},)


def _gpus_of_group(group: Mapping[str, Any], backend: str, devices: int) -> list[int]:
    kind, count = group.get("kind", "KIND_AUTO"), int(group.get("count", 1))
    if kind == "KIND_MODEL":
        return [0] * count
    if kind == "KIND_GPU" or (kind == "KIND_AUTO" and devices and backend in _ON_EVERY_GPU):
        return [gpu for gpu in (group.get("gpus") or range(devices or 1)) for _ in range(count)]
    return []


def parameter(config: Mapping[str, Any], name: str) -> str:
    """A string of `parameters`; empty where there is none."""
    value = config.get("parameters", {}).get(name, {})
    return str(value.get("string_value", "") if isinstance(value, Mapping) else value)
