"""A plan comes in; what a deployment of it must know goes out: names, GPUs, sizes, and the flags that follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from builder.memory.account import MemoryPlan
from builder.plan import Plan

MIB, GIB = 2**20, 2**30
HOST_BYTES_PER_PROCESS = GIB  # a Python model with its libraries; 0.3 to 1.1 GiB were seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What there is to deploy.

    Attributes:
        pipeline: its name; also that of its main ensemble, the entry model.
        entries: all ensembles of it.
        queued: steps whose queue Triton sees. An ensemble's own is always empty, and so is that of a language model,
            which takes every request at once and queues inside.
        engines: the language models.
        name: what its objects on Kubernetes are called, as DNS takes it.
        image: the server's image; release is the container tag it is made of.
        gateway_image, worker_image: of what asks it.
        gpus, gpu_name: how many of which kind.
        flags: flags of tritonserver that the plan has set.
        shm_bytes: what /dev/shm must hold.
        weight_bytes: what is read before the first answer.
        memory_bytes: of the host, shared memory included.
    """

    pipeline: str
    entries: tuple[str, ...]
    queued: tuple[str, ...]
    engines: tuple[str, ...]
    name: str
    image: str
    gateway_image: str
    worker_image: str
    release: str
    gpus: int
    gpu_name: str
    flags: tuple[str, ...]
    shm_bytes: int
    weight_bytes: int
    memory_bytes: int


def facts_of(plan: Plan, memory: MemoryPlan, pipeline: str, versions: Mapping[str, str]) -> Facts:
    """The facts of one pipeline whose memory was planned, and fits."""
    entries = tuple(one.name for one in plan.ensembles if one.pipeline == pipeline)
    engines = tuple(cache.model for cache in memory.caches)
    shm_bytes = next(int(one.value.removesuffix("m")) * MIB for one in memory.settings if one.name == "--shm-size")
    weight_bytes = sum(part.bytes for account in memory.accounts for part in account.parts if part.kind == "weights")
    models = [model.name for model in plan.models]
    return Facts(
        pipeline=pipeline,
        entries=entries,
        queued=tuple(name for name in models if name not in engines),
        engines=engines,
        name=f"triton-{pipeline}".replace("_", "-").lower(),
        image=versions["SERVE_IMAGE"],
        gateway_image=versions["GATEWAY_IMAGE"],
        worker_image=versions["WORKER_IMAGE"],
        release=versions["TRITON_RELEASE"],
        gpus=len(memory.accounts),
        gpu_name=memory.accounts[0].gpu.name,
        flags=tuple(f"{one.name}={one.value}" for one in memory.settings if one.where == "tritonserver"),
        shm_bytes=shm_bytes,
        weight_bytes=weight_bytes,
        memory_bytes=shm_bytes + ceil(weight_bytes * 1.1) + HOST_BYTES_PER_PROCESS * (len(models) + 1),
    )
