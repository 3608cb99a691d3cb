"""What follows from a memory plan: flags, arguments and limits, in the words of the programs that take them.

In: accounts, caches, edges, and the version of vLLM. Out: `Setting`s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

from builder.handover.edges import Edge
from builder.handover.places import HOST
from builder.memory.account import CacheFit, GpuAccount, Setting
from builder.memory.devices import MIB, bytes_text
from builder.memory.engine import Engine

LEAST_POOL_BYTES = 64 * MIB
LEAST_PINNED_BYTES = 256 * MIB
LEAST_SHM_BYTES = 1024 * MIB
FIXED_CACHE_SINCE = (0, 10, 2)
OWN_SHARE_SINCE = (0, 9)


def vllm_version(text: str) -> tuple[int, ...]:
    """(0, 10, 2) of `0.10.2+9dd9ca32.nv25.10.cu130`."""
    return tuple(int(part) for part in re.match(r"[\d.]*\d|", text)[0].split(".") if part)  # type: ignore[index]


def pool_bytes(edges: Iterable[Edge], concurrency: int, devices: int) -> dict[int, int]:
    """Triton's CUDA pool by GPU: every edge that lies there, as often as requests are under way, and a quarter.

    The server takes one on every GPU it sees.
    """
    need = dict.fromkeys(range(devices), 0)
    for one in {(one.source, one.source_key): one for one in edges if one.place != HOST}.values():
        need[one.place] = need.get(one.place, 0) + one.bytes * concurrency
    return {gpu: max(LEAST_POOL_BYTES, _up(size * 5 // 4)) for gpu, size in need.items()}


def pinned_bytes(edges: Iterable[Edge], concurrency: int) -> int:
    """The pinned pool: whatever goes over the bus, as often as requests are under way."""
    return max(LEAST_PINNED_BYTES, _up(sum(one.bytes for one in edges if one.crossings) * concurrency))


def shm_bytes(edges: Iterable[Edge], processes: Mapping[str, int], concurrency: int) -> int:
    """/dev/shm: for each process of a Python model 1 MiB, and its inputs and outputs as often as they are there.

    A region never shrinks, and grows by whole MiB.
    """
    each: dict[str, int] = {}
    counted: set[tuple[str, str]] = set()
    for one in edges:
        if one.target in processes:
            each[one.target] = each.get(one.target, 0) + one.bytes
        if one.source in processes and (one.source, one.source_key) not in counted:
            counted.add((one.source, one.source_key))
            each[one.source] = each.get(one.source, 0) + one.bytes
    need = sum(_up(MIB + each.get(name, 0) * concurrency) * count for name, count in processes.items())
    return max(LEAST_SHM_BYTES, _up(need * 5 // 4))


def settings_of(
    accounts: Sequence[GpuAccount],
    engines: Sequence[Engine],
    caches: Sequence[CacheFit],
    limits: Mapping[str, int],
    pools: Mapping[int, int],
    pinned: int,
    shm: int,
    version: tuple[int, ...],
) -> tuple[Setting, ...]:
    """Everything to set."""
    found = [
        setting
        for engine, cache in zip(engines, caches, strict=True)
        for setting in _of_engine(engine, cache, accounts, version)
    ]
    for name, size in limits.items():
        why = "weights and tensors, and a quarter; each instance has an arena of its own"
        found.append(Setting(where=name, name="gpu_mem_limit", value=str(size), why=why))
        why = "the arena grows by what is asked for, not to the next power of two"
        found.append(Setting(where=name, name="arena_extend_strategy", value="1", why=why))
    for gpu, size in pools.items():
        why = "edges that stay on the GPU; when it is full they go over the host, silently"
        found.append(Setting(where="tritonserver", name="--cuda-memory-pool-byte-size", value=f"{gpu}:{size}", why=why))
    why = "buffers for what goes over the bus"
    found.append(Setting(where="tritonserver", name="--pinned-memory-pool-byte-size", value=str(pinned), why=why))
    why = "inputs and outputs of every Python model's process; docker gives 64 MiB by itself"
    found.append(Setting(where="docker run", name="--shm-size", value=f"{ceil(shm / MIB)}m", why=why))
    return tuple(found)


def instances_of_models(accounts: Iterable[GpuAccount], counts: Mapping[str, Sequence[int]]) -> Iterator[Setting]:
    """How many instances each model has on each GPU, and what one takes there.

    Args:
        counts: by model the GPUs of its instances, each as often as it has some there; language models left out.
    """
    for account in accounts:
        for name, gpus in counts.items():
            count = gpus.count(account.index)
            if count:
                each = sum(one.bytes for one in account.parts if one.owner == name) // count
                yield Setting(
                    where=name,
                    name=f"instances on GPU {account.index}",
                    value=str(count),
                    why=f"each takes {bytes_text(each)} there",
                )


def _of_engine(
    engine: Engine, cache: CacheFit, accounts: Sequence[GpuAccount], version: tuple[int, ...]
) -> Iterator[Setting]:
    account = accounts[engine.first]
    own = sum(one.bytes for one in account.parts if one.owner == engine.model)
    total = account.gpu.memory_bytes
    told = ".".join(str(part) for part in version)
    if version >= FIXED_CACHE_SINCE:
        yield Setting(
            where=engine.model,
            name="kv_cache_memory_bytes",
            value=str(cache.bytes),
            why=f"vLLM {told} takes the cache's size itself, so nothing else on the GPU changes it",
        )
        share, why = own, "what this engine takes in all; the start-up check asks for that much to be free"
    elif version >= OWN_SHARE_SINCE:
        share, why = own, f"vLLM {told} counts what this engine takes, weights and cache together"
    else:
        share, why = account.used, f"vLLM {told} counts what anyone takes on the GPU; start it last"
    percent = -(-share * 100 // total)
    yield Setting(where=engine.model, name="gpu_memory_utilization", value=f"{percent / 100:.2f}", why=why)
    if engine.dtype == "bfloat16" and not account.gpu.bf16:
        why = f"{account.gpu.name} cannot compute in bfloat16, what the checkpoint is stored in; vLLM would not start"
        yield Setting(where=engine.model, name="dtype", value="half", why=why)
    if not engine.arguments.get("max_model_len"):
        yield Setting(
            where=engine.model, name="max_model_len", value=str(cache.longest), why="what the plan was made for"
        )


def _up(size: int) -> int:
    """The next whole MiB."""
    return -(-size // MIB) * MIB
