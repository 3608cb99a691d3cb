"""The plan of the GPUs that several models share.

In: a `Plan`, GPUs, the version of vLLM. Out: a `MemoryPlan`: every part added up, the rest given to the KV caches, and
all that follows; or refusals with the sum, and what would fit instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from builder.catalog import Catalog
from builder.errors import DeclarationError
from builder.handover.edges import Edge, edges_of
from builder.handover.places import gpus_of, runs_onnx_in_python
from builder.handover.sizes import sizes_of
from builder.memory.account import KINDS, CacheFit, GpuAccount, MemoryPlan, Part, Setting
from builder.memory.demand import Demand, demand_of, processes
from builder.memory.devices import Gpu, bytes_text
from builder.memory.engine import Engine, is_engine
from builder.memory.settings import instances_of_models, pinned_bytes, pool_bytes, settings_of, shm_bytes
from builder.memory.ways import ways_out
from builder.plan import Plan
from builder.tensors import did_you_mean

LENGTHS = (512, 2048, 8192, 32768, 131072)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a person asks for.

    Attributes:
        devices: the GPUs, number 0 first.
        version: vLLM's.
        concurrency: requests under way at once, for pools and shared memory.
        sizes: dims by tensor, of what varies.
        reserved: bytes of GPU memory by model, for what no file tells.
        arguments: arguments of every engine, in place of those in its `model.json`.
    """

    devices: tuple[Gpu, ...]
    version: tuple[int, ...]
    concurrency: int = 8
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)


def check_ask(plan: Plan, ask: Ask) -> None:
    """Return if everything that is asked for by name is there.

    Raises:
        DeclarationError: a model or tensor of that name is not in the pipelines, or no language model takes arguments.
    """
    tensors = dict.fromkeys(
        tensor["name"] for model in plan.models for side in ("input", "output") for tensor in model.config.get(side, ())
    )
    models = [model.name for model in plan.models]
    for option, given, known in (("--size", ask.sizes, list(tensors)), ("--reserve", ask.reserved, models)):
        for name in given:
            if name not in known:
                kind = "tensor" if option == "--size" else "model"
                raise DeclarationError(
                    where=option,
                    found=f"no {kind} is called {name}{did_you_mean(name, known)}",
                    expected=f"one of {', '.join(known)} is needed",
                    fix="Write one of these",
                )
    if ask.arguments and not any(is_engine(model) for model in plan.models):
        raise DeclarationError(
            where="--engine",
            found=f"{', '.join(ask.arguments)}, and no language model in {', '.join(plan.pipelines)}",
            expected="a pipeline with one is needed",
            fix="Leave it out",
        )


def plan_memory(plan: Plan, ask: Ask, exports: Path) -> MemoryPlan:
    """The memory plan of everything that a repository holds.

    Raises:
        DeclarationError: a model asks for a GPU that is not there, or a checkpoint's config cannot be read.
    """
    catalog = plan.catalog("gpu")
    demand = demand_of(plan.models, catalog, ask.devices, exports, reserved=ask.reserved, arguments=ask.arguments)
    _check_devices(plan, catalog, demand.engines, ask.devices)
    edges = all_edges(plan, catalog, ask)
    made = _made(demand, edges, ask)
    settings: tuple[Setting, ...] = ()
    if not made.refusals:
        settings = settings_of(
            made.accounts,
            demand.engines,
            made.caches,
            demand.limits,
            pool_bytes(edges, ask.concurrency, len(ask.devices)),
            pinned_bytes(edges, ask.concurrency),
            shm_bytes(edges, processes(plan.models, catalog, len(ask.devices)), ask.concurrency),
            ask.version,
        ) + tuple(instances_of_models(made.accounts, _instances(plan, catalog, demand.engines, len(ask.devices))))
    # by the models' own names, as --size takes them
    guessed = sorted({one.target_key if one.source == "caller" else one.source_key for one in edges if one.guessed})
    notes = demand.notes + (
        (f"sizes that vary and were taken as 1: {', '.join(guessed)}; give them by --size NAME=DIMS",)
        if guessed
        else ()
    )
    ways = (
        tuple(ways_out(demand, ask.devices, lambda one, on: _made(one, edges, replace(ask, devices=on))))
        if made.refusals
        else ()
    )
    return replace(made, settings=settings, notes=notes, ways=ways)


def all_edges(plan: Plan, catalog: Catalog, ask: Ask, *, embedded: bool = False) -> tuple[Edge, ...]:
    """The edges of the ensembles with every input: those derived from them have no others."""
    sizes = sizes_of(plan.models, ask.sizes)
    embedded = embedded or runs_onnx_in_python(plan.target)
    return tuple(
        edge
        for ensemble in plan.ensembles
        if not ensemble.left_out
        for edge in edges_of(catalog.entries[ensemble.name], catalog, sizes, embedded=embedded)
    )


def _instances(plan: Plan, catalog: Catalog, engines: Sequence[Engine], devices: int) -> Mapping[str, tuple[int, ...]]:
    """The GPUs of every model's instances, but of engines: these run all their requests in one."""
    alone = {one.model for one in engines}
    return {
        one.name: gpus_of(catalog.entries[one.name].config, devices) for one in plan.models if one.name not in alone
    }


def _check_devices(plan: Plan, catalog: Catalog, engines: Sequence[Engine], devices: Sequence[Gpu]) -> None:
    wanted = {model.name: max(gpus_of(catalog.entries[model.name].config), default=0) + 1 for model in plan.models}
    wanted |= {one.model: one.gpus[-1] + 1 for one in engines}
    for engine in engines:
        kinds = {group.get("kind") for group in catalog.entries[engine.model].config.get("instance_group", ())}
        if len(engine.gpus) > 1 and "KIND_GPU" in kinds:
            raise DeclarationError(
                where=engine.model,
                found=f"it spans {len(engine.gpus)} GPUs, and its instance of KIND_GPU sees one",
                expected="KIND_MODEL is needed, so one chain",
                fix="Leave --chains out, or tensor_parallel_size and pipeline_parallel_size",
            )
    for name, count in wanted.items():
        if count > len(devices):
            raise DeclarationError(
                where=name,
                found=f"it needs {count} GPUs, {len(devices)} {'is' if len(devices) == 1 else 'are'} given",
                expected="as many GPUs as its instances and its parallelism name are needed",
                fix=f"Give {count} GPUs: --gpu {count}x{devices[0].name}, or change the model",
            )


def _made(demand: Demand, edges: Sequence[Edge], ask: Ask) -> MemoryPlan:
    """The plan of a demand, without settings."""
    pools = pool_bytes(edges, ask.concurrency, len(ask.devices))
    parts = [*demand.parts, *(_pool(gpu, size, ask.concurrency) for gpu, size in pools.items())]
    refusals: list[str] = []
    caches: list[CacheFit] = []
    waiting = list(demand.engines)
    for engine in demand.engines:
        on = engine.gpus
        # a GPU's rest is shared by the engines on it that have no cache yet
        sharing = {gpu: sum(gpu in one.gpus for one in waiting) for gpu in on}
        room = min(_account(gpu, ask.devices[gpu], parts).over * -1 // sharing[gpu] for gpu in on)
        size, refusal = _cache_bytes(engine, room, _account(on[0], ask.devices[on[0]], parts))
        refusals += [refusal] if refusal else []
        waiting.remove(engine)
        caches.append(_fit(engine, size))
        why = f"{caches[-1].tokens:,} tokens of {bytes_text(caches[-1].bytes_per_token)}"
        parts += [Part(gpu=gpu, owner=engine.model, kind="cache", bytes=size, why=why) for gpu in on]
    accounts = tuple(_account(index, gpu, parts) for index, gpu in enumerate(ask.devices))
    if not refusals:
        refusals += [_sum_of(one) for one in accounts if one.over > 0]
    return MemoryPlan(accounts=accounts, caches=tuple(caches), settings=(), notes=(), refusals=tuple(refusals))


def _pool(gpu: int, size: int, concurrency: int) -> Part:
    why = f"edges that stay on the GPU, {concurrency} requests at once"
    return Part(gpu=gpu, owner="tritonserver", kind="pool", bytes=size, why=why)


def _account(index: int, gpu: Gpu, parts: Sequence[Part]) -> GpuAccount:
    mine = [one for one in parts if one.gpu == index]
    mine.sort(key=lambda one: KINDS.index(one.kind))
    return GpuAccount(index=index, gpu=gpu, parts=tuple(mine))


def _cache_bytes(engine: Engine, room: int, account: GpuAccount) -> tuple[int, str]:
    """Bytes of an engine's cache, and why they cannot be had, if so: what is given, or else what is left."""
    cache = engine.cache()
    least = cache.bytes_of(engine.longest) + cache.block_bytes
    if engine.given_cache_bytes is not None:
        given = engine.given_cache_bytes
        if given < least:
            return given, (
                f"{engine.model}: kv_cache_memory_bytes is {bytes_text(given)}, one sequence of {engine.longest:,} "
                f"tokens takes {bytes_text(least)}. Give it more, or a smaller max_model_len"
            )
        return given, ""
    if room < least:
        told = f"{bytes_text(room)} is left" if room > 0 else f"{bytes_text(-room)} is missing already"
        return least, (
            f"{_sum_of(account, before=True)} For the KV cache of {engine.model} {told}; one sequence of "
            f"{engine.longest:,} tokens takes {bytes_text(least)}"
        )
    most = cache.blocks_of(engine.longest) * cache.block_bytes * engine.most_sequences
    return min(room, most) // cache.block_bytes * cache.block_bytes, ""


def _sum_of(account: GpuAccount, *, before: bool = False) -> str:
    """The sum of a GPU's parts as one line."""
    by_owner: dict[str, int] = {}
    for one in account.parts:
        by_owner[one.owner] = by_owner.get(one.owner, 0) + one.bytes
    summed = " + ".join(f"{owner} {bytes_text(size)}" for owner, size in by_owner.items())
    verdict = "" if before else f", {bytes_text(account.over)} too many"
    return (
        f"GPU {account.index} ({account.gpu.name}): {summed} = {bytes_text(account.used)} of "
        f"{bytes_text(account.usable)} (95 % of {bytes_text(account.gpu.memory_bytes)}){verdict}."
    )


def _fit(engine: Engine, size: int) -> CacheFit:
    cache = engine.cache()
    lengths = dict.fromkeys([*(one for one in LENGTHS if one < engine.longest), engine.longest])
    return CacheFit(
        model=engine.model,
        architecture=engine.network.name,
        storage=engine.storage,
        tensor_parallel=engine.tensor_parallel,
        pipeline_parallel=engine.pipeline_parallel,
        bytes=size,
        bytes_per_token=cache.bytes_per_token,
        blocks=cache.blocks(size),
        tokens=cache.tokens(size, engine.longest),
        longest=engine.longest,
        sequences={length: cache.sequences(size, length) for length in lengths},
    )
