"""What would fit, where a plan does not: one change each, with shorter sequences where that alone does not do.

In: what the models want, and how to plan that for some GPUs. Out: `Way`s, the smallest change first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from builder.memory.account import MemoryPlan, Way
from builder.memory.demand import Demand, engine_parts
from builder.memory.devices import Gpu, known_gpus
from builder.memory.engine import Engine

Turn = Callable[[Engine], Engine]
Made = Callable[[Demand, tuple[Gpu, ...]], MemoryPlan]
SHORTEST = 1024
_FOUR_BITS = {"quant_method": "awq", "bits": 4, "group_size": 128}


def ways_out(demand: Demand, devices: Sequence[Gpu], make: Made) -> Iterator[Way]:
    """Plans that do fit."""
    here = tuple(devices)
    if demand.engines:
        for change, turn in _turns(demand):
            yield from _longest(change, demand, here, make, turn)
        yield from _spread(demand, here[0], make)
    for gpu in known_gpus().values():
        if gpu.memory_bytes > here[0].memory_bytes:
            found = _tried(f"a larger GPU: --gpu {gpu.name}", demand, (gpu,) * len(here), make)
            if found:
                yield found
                return


def _turns(demand: Demand) -> Iterator[tuple[str, Turn]]:
    """Changes of the engines on the same GPUs: what a person reads, and the change."""
    if any(one.given_cache_bytes is not None for one in demand.engines):
        yield "leave kv_cache_memory_bytes out: the cache gets what is left", _unfixed
    else:
        yield "", _unfixed
    yield "a KV cache of 8 bits: kv_cache_dtype fp8", lambda one: _unfixed(one).changed(kv_cache_dtype="fp8")
    small = "small steps, no CUDA graphs: max_num_batched_tokens 2048, max_num_seqs 64, enforce_eager true"
    yield small, _small_steps
    if not all(one.network.quantization for one in demand.engines):
        yield "a checkpoint of the same network in 4 bits (AWQ, GPTQ)", _in_four_bits


def _longest(change: str, demand: Demand, devices: tuple[Gpu, ...], make: Made, turn: Turn) -> Iterator[Way]:
    """The change alone if that does, else with the longest sequences (a power of two) with which it does."""
    asked = max(one.longest for one in demand.engines)
    found = _tried(change, demand, devices, make, turn) if change else None
    length = 1 << (asked - 1).bit_length() - 1
    while found is None and length >= SHORTEST:

        def shorter(one: Engine, length: int = length) -> Engine:
            return turn(one).changed(max_model_len=min(length, one.longest))

        words = f"{change}; max_model_len {length}" if change else f"shorter sequences: max_model_len {length}"
        found = _tried(words, demand, devices, make, shorter)
        length //= 2
    if found is not None:
        yield found


def _spread(demand: Demand, gpu: Gpu, make: Made) -> Iterator[Way]:
    """The fewest GPUs of the same kind over which every layer can be split."""
    for count in (2, 4, 8):
        if any(one.network.heads % count or count <= one.tensor_parallel for one in demand.engines):
            continue

        def turn(one: Engine, count: int = count) -> Engine:
            return replace(_unfixed(one).changed(tensor_parallel_size=count), first=0)

        words = f"tensor parallelism over {count} GPUs: --gpu {count}x{gpu.name}, tensor_parallel_size {count}"
        found = _tried(words, demand, (gpu,) * count, make, turn)
        if found:
            yield found
            return


def _tried(
    change: str, demand: Demand, devices: tuple[Gpu, ...], make: Made, turn: Turn = lambda one: one
) -> Way | None:
    """The way if the demand fits after the change; None if not."""
    engines = tuple(turn(one) for one in demand.engines)
    names = {one.model for one in engines}
    others = [part for part in demand.parts if part.owner not in names]
    parts = (*others, *(part for one in engines for part in engine_parts(one, devices)))
    made = make(replace(demand, engines=engines, parts=parts), devices)
    if not made.fits:
        return None
    fullest = max(made.accounts, key=lambda one: one.used / one.gpu.memory_bytes)
    return Way(change=change, fills=fullest.used, of=fullest.gpu.memory_bytes)


def _unfixed(engine: Engine) -> Engine:
    return engine.changed(kv_cache_memory_bytes=None)


def _small_steps(engine: Engine) -> Engine:
    return _unfixed(engine).changed(
        enforce_eager=True,
        max_num_batched_tokens=min(2048, engine.batched_tokens),
        max_num_seqs=min(64, engine.most_sequences),
    )


def _in_four_bits(engine: Engine) -> Engine:
    if engine.network.quantization:
        return _unfixed(engine)
    return replace(_unfixed(engine), network=replace(engine.network, quantization=_FOUR_BITS))
