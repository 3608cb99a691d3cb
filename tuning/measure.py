"""Service times, measured on a running server: as many requests at once as the batch shall have rows, again and again.

For this the model is loaded with a long delay, so that requests that come together run together, and with nothing else
under way an execution takes what it takes alone. What each took is the server's own count; what it kept busy is the
processor time of the model's processes.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from clients.endpoint import Endpoint, endpoint
from load.clock import run_finely
from load.plan import Send
from load.statistics import ModelCounts, model_counts
from load.triton import Item, TritonTarget
from tuning.errors import TuningError
from tuning.network import Step, longest_way_s
from tuning.processes import cpu_s, models_cpu_s
from tuning.served import Served
from tuning.times import ServiceTimes, spell_of

GATHER_US = 40_000
GATHER_US_PER_MB = 10_000  # of all that comes together
SETTLED_WITHIN_S = 10.0
SETTLE_S = 0.004
WARM = 3
LATER = 3.0
TOGETHER = 4
SHORT, SHORT_S = 4, 2.0  # what is short is measured so many times as often, for so long: its few slowest count


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One model, or the steps of one pipeline.

    Attributes:
        times: by name of the model.
        travel_s: how long a request is under way besides queues and executions, with nothing else going on.
        handling_s: processor time of server and client for one request more, its execution apart.
        later: models whose execution hands the request on and returns: their times are what no other step explains.
    """

    times: Mapping[str, ServiceTimes]
    travel_s: float
    handling_s: float
    later: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Requests sent together: their mean latency, what the server counted, processor time by model and of the rest."""

    latency_s: float
    counts: Mapping[str, ModelCounts]
    cores_s: Mapping[str, float]
    rest_s: float


def measure_batches(
    served: Served, item: Item, config: Mapping[str, Any], sizes: Sequence[int], repeats: int = 25
) -> Measured:
    """A model that batches, at some batch sizes. It stays loaded with the config for measuring: load it anew.

    Between two executions the server rests, on average as long as one takes: without that they would be faster than
    those of a server that has something to do half of the time.

    Args:
        item: a request of one row for the model itself.
        config: of the model; its window is replaced, one instance is loaded.
        repeats: executions of each size, at least.

    Raises:
        TuningError: requests that were sent together did not run together.
    """
    name = item.request.model
    size_mb = max(sizes) * sum(tensor.byte_size for tensor in item.request.tensors) / 1e6
    served.load(name, gathering(config, max(GATHER_US, round(GATHER_US_PER_MB * size_mb))))
    executions: list[tuple[float, int, float]] = []
    found: dict[int, list[Burst]] = {size: [] for size in sizes}

    async def all_sizes(send: Send) -> None:
        for _ in range(WARM):
            await burst(served, send, name, min(2, max(sizes)))
        done, spent_s = dict.fromkeys(sizes, 0), dict.fromkeys(sizes, 0.0)
        # All sizes in turn: what the machine does meanwhile meets each of them.
        while left := [one for one in sizes if done[one] < (SHORT if spent_s[one] < SHORT_S else 1) * repeats]:
            for size in left:
                began = time.monotonic()
                one = await burst(served, send, name, size)
                rested_s = time.monotonic() - began - one.latency_s  # while the server's counts were read
                took_s = execution_s(one.counts[name])
                done[size], spent_s[size] = done[size] + 1, spent_s[size] + took_s
                if list(one.counts[name].batches) == [size]:
                    executions.append((began, size, took_s))
                    found[size].append(one)
                await asyncio.sleep(random.uniform(0, 2 * took_s) - rested_s)

    with_connection(served, [item], all_sizes)
    seconds = {size: tuple(took_s for _, rows, took_s in executions if rows == size) for size in sizes}
    for size, some in seconds.items():
        if len(some) < repeats / 3:
            raise TuningError(
                name,
                f"of {repeats} times {size} requests at once, {len(some)} ran as one batch",
                "requests that come together must run together",
                "Is the machine busy with something else?",
            )
    cores = median(one.cores_s.get(name, 0.0) / execution_s(one.counts[name]) for one in found[max(sizes)])
    first, last = min(sizes), max(sizes)
    more = median(one.rest_s for one in found[last]) - median(one.rest_s for one in found[first])
    travel = median(one.latency_s - queue_s(one.counts[name]) - execution_s(one.counts[name]) for one in found[first])
    handling_s = max(0.0, more / (last - first)) if last > first else 0.0
    return Measured(
        times={name: ServiceTimes(seconds=seconds, cores=cores, spell_s=spell_of(executions))},
        travel_s=max(0.0, travel - handling_s),
        handling_s=handling_s,
    )


def measure_pipeline(served: Served, items: Sequence[Item], steps: Sequence[Step], repeats: int = 12) -> Measured:
    """Every step of a pipeline, one request after the other: each execution has one request.

    `travel_s` holds what passes between the steps, too. What handling costs is seen from a few requests at once.

    Args:
        steps: of the pipeline; some may work beside each other.
    """
    bursts: list[Burst] = []
    together: list[Burst] = []

    async def one_by_one(send: Send) -> None:
        for number in range(WARM + repeats):
            one = await burst(served, send, items[0].request.model, 1, number % len(items))
            if number >= WARM:
                bursts.append(one)
        for _ in range(WARM):
            together.append(await burst(served, send, items[0].request.model, TOGETHER))

    with_connection(served, items, one_by_one)
    models = dict.fromkeys(step.model for step in steps)
    ran = [name for name in models if all(one.counts[name].executions for one in bursts)]
    seconds = {name: [execution_s(one.counts[name]) for one in bursts] for name in ran}
    used_s = {name: [one.cores_s.get(name, 0.0) for one in bursts] for name in ran}
    stayed_s = [
        {name: queue_s(one.counts[name]) + seconds[name][place] for name in ran} for place, one in enumerate(bursts)
    ]
    travels_s = [one.latency_s - longest_way_s(steps, stayed) for one, stayed in zip(bursts, stayed_s, strict=True)]
    # More processor time than the execution took: the work is done after `execute` has returned.
    later = frozenset(name for name in ran if median(used_s[name]) > LATER * max(median(seconds[name]), 1e-3))
    more_s = median(one.rest_s for one in together) - median(one.rest_s for one in bursts)
    handling_s = max(0.0, more_s / (TOGETHER - 1))
    work_s = sum(median(used_s[name]) for name in later)
    for name in later:
        share = median(used_s[name]) / work_s
        seconds[name] = [max(1e-6, share * travel) for travel in travels_s]
    return Measured(
        times={
            name: ServiceTimes(
                seconds={1: tuple(undisturbed(seconds[name]))},
                cores=median(used_s[name]) / max(1e-6, median(seconds[name])),
            )
            for name in ran
        },
        travel_s=0.0 if later else max(0.0, median(travels_s) - handling_s),
        handling_s=handling_s,
        later=later,
    )


def undisturbed(seconds: Sequence[float]) -> list[float]:
    """Without what took more than twice the median: then something else had the processor, or the host."""
    limit = 2 * median(seconds)
    return [one for one in seconds if one <= limit]


def gathering(config: Mapping[str, Any], window_us: int) -> dict[str, Any]:
    """The config with a window long enough for requests to come together, and one instance."""
    groups = [dict(group) for group in config.get("instance_group", ())] or [{}]
    return {
        **config,
        "dynamic_batching": {"max_queue_delay_microseconds": window_us},
        "instance_group": [{**groups[0], "count": 1}],
    }


async def burst(served: Served, send: Send, model: str, size: int, item: int = 0) -> Burst:
    """Some requests at once, until all are answered."""
    where = endpoint(f"grpc://{served.grpc}")
    before, models_before = model_counts(where, (model,)), models_cpu_s(served.pid)
    rest_before, began = cpu_s(served.pid) + time.process_time(), time.perf_counter()

    async def one() -> float:
        await send(item)
        return time.perf_counter() - began

    latencies = await asyncio.gather(*(one() for _ in range(size)))
    rest_s = cpu_s(served.pid) + time.process_time() - rest_before
    counts = await settled(where, model, before, size)
    models_after = models_cpu_s(served.pid)
    return Burst(
        latency_s=sum(latencies) / size,
        counts=counts,
        cores_s={name: used - models_before.get(name, 0.0) for name, used in models_after.items()},
        rest_s=rest_s,
    )


async def settled(where: Endpoint, model: str, before: Mapping[str, ModelCounts], size: int) -> dict[str, ModelCounts]:
    """What the server counted since `before`, once it has counted all: it does so a moment after it has answered."""
    limit = time.monotonic() + SETTLED_WITHIN_S
    while time.monotonic() < limit:
        await asyncio.sleep(SETTLE_S)
        counts = {name: one - before[name] for name, one in model_counts(where, (model,)).items()}
        if counts[model].requests >= size:
            return counts
    raise TuningError(
        model,
        f"the server counted {counts[model].requests} of {size} answers after {SETTLED_WITHIN_S:g} s",
        "a server that counts what it answers is needed",
        "Look into its log",
    )


def execution_s(counts: ModelCounts) -> float:
    """How long the one execution among these counts took, inputs and outputs included."""
    infer = next(iter(counts.batches.values())).mean_s if counts.batches else counts.infer.mean_s
    return counts.input.mean_s + infer + counts.output.mean_s


def queue_s(counts: ModelCounts) -> float:
    """How long a request waited, on average."""
    return counts.queue.mean_s


def with_connection(served: Served, items: Sequence[Item], work: Callable[[Send], Awaitable[None]]) -> None:
    """Do work that sends the items by their place."""
    target = TritonTarget(url=f"grpc://{served.grpc}", items=tuple(items))
    with target.prepared() as connectable:

        async def connected() -> None:
            async with connectable.connect() as send:
                await work(send)

        run_finely(connected())
