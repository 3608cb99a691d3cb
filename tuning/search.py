"""What to try: for every model that batches, settings that keep the promise up to the highest rate.

In: a network as it is served now, and for each model that may be turned its service times by number of threads. Out:
the best settings, with the rate up to which the 95th percentile stays below the promise, by the model of the batcher.
Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tuning.arrivals import poisson
from tuning.network import Network, Station
from tuning.settings import Serving
from tuning.simulate import simulate
from tuning.times import ServiceTimes

REQUESTS = 400
SEED = 7
DELAYS_S = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04)
NEAR = 0.03  # rates so near to each other are equal: then the simpler settings win
HALVINGS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Turnable:
    """A model that may be turned.

    Attributes:
        times: by number of threads of one execution, measured.
        sizes: largest batches to try.
        is_capped: the largest batch may become `max_batch_size`, as no request has more than one row; else it can only
            be preferred.
        instances: how many to try.
    """

    times: Mapping[int, ServiceTimes]
    sizes: Sequence[int]
    is_capped: bool
    instances: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Settings of some models, and the rate up to which they keep the promise by the model of the batcher."""

    servings: Mapping[str, Serving]
    network: Network
    per_s: float


def propose(
    network: Network,
    turnable: Mapping[str, Turnable],
    promise_s: float,
    tell: Callable[[str], None] = lambda line: None,
) -> Proposal:
    """The best settings found: one model after the other, twice where several depend on each other.

    Args:
        promise_s: what 95 % of the latencies shall not exceed.
    """
    best = Proposal(servings={}, network=network, per_s=highest_rate(network, promise_s))
    for _ in range(2 if len(turnable) > 1 else 1):
        for model, turned in turnable.items():
            tried = 0
            for serving, times in candidates(best.network.stations[model].serving, turned, promise_s):
                tried += 1
                station = replace(best.network.stations[model], serving=serving, times=times)
                other = replace(best.network, stations={**best.network.stations, model: station})
                # Most candidates are no better: one run at the best rate so far tells.
                if best.per_s and not keeps(other, best.per_s * (1 + NEAR), promise_s):
                    continue
                rate = highest_rate(other, promise_s, at_least=best.per_s)
                if rate > best.per_s * (1 + NEAR):
                    best = Proposal(servings={**best.servings, model: serving}, network=other, per_s=rate)
            tell(f"{model}: {tried} settings simulated; up to {best.per_s:.3g} requests a second")
    return best


def candidates(now: Serving, turned: Turnable, promise_s: float) -> Iterator[tuple[Serving, ServiceTimes]]:
    """Settings to try, the simple ones first: few threads, one instance, no delay."""
    for threads, times in sorted(turned.times.items()):
        for instances in turned.instances:
            for size in sorted(turned.sizes, reverse=True):
                for delay_s in (one for one in DELAYS_S if one <= promise_s / 3):
                    serving = replace(
                        now, dynamic=True, threads=threads, instances=instances, max_queue_delay_s=delay_s, preferred=()
                    )
                    if turned.is_capped:
                        serving = replace(serving, max_batch_size=size)
                    elif size < now.max_batch_size:
                        serving = replace(serving, preferred=(size,))
                    yield serving, times


def highest_rate(network: Network, promise_s: float, at_least: float = 0.0) -> float:
    """Requests a second up to which the promise is kept; 0 if it is not kept for requests that come alone.

    With a long window it may hold at high rates only, which fill the batches: that is no promise.
    """
    low, high = at_least, max(2 * at_least, 2 * bound(network))
    if not keeps(network, bound(network) / 50, promise_s):
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(network, middle, promise_s) else (low, middle)
    return low


def keeps(network: Network, per_s: float, promise_s: float) -> bool:
    """Whether the promise is kept at this rate, and the queues do not grow without end."""
    if per_s <= 0:
        return False
    outcome = simulate(network, poisson(per_s, REQUESTS / per_s, SEED), seed=SEED)
    late = outcome.latencies_s[len(outcome.latencies_s) // 2 :]
    return outcome.latency_s(0.95) <= promise_s and sorted(late)[int(0.95 * len(late))] <= promise_s


def bound(network: Network) -> float:
    """Requests a second that nothing exceeds: each station in largest batches, all cores together."""
    work_s: dict[str, float] = {}
    slowest = float("inf")
    for step in network.steps:
        station = network.stations[step.model]
        each_s, cores_s = cost(station)
        slowest = min(slowest, station.serving.instances / each_s)
        work_s[station.runs_on] = work_s.get(station.runs_on, network.handling_s) + cores_s
    shared = min(network.capacity[name] / max(used, 1e-9) for name, used in work_s.items())
    return min(slowest, shared)


def cost(station: Station) -> tuple[float, float]:
    """Seconds of an instance, and core seconds, that a request costs in largest batches."""
    rows = station.serving.largest if station.serving.dynamic else 1
    each_s = station.times.mean(rows) / rows
    return max(each_s, 1e-9), each_s * station.times.cores
