"""A real load beside its simulation: the same arrivals, at the same times.

In: a network and the arrivals. Out: how far the model is off, and how much of the machine something else took
meanwhile: a comparison during which others worked says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from load.arrivals import Replay
from load.plan import LoadPlan
from load.results import Result
from load.running import run
from load.statistics import ModelCounts
from load.triton import Item, TritonTarget
from tuning.network import Network
from tuning.outcome import Outcome
from tuning.processes import cpu_s, models_cpu_s
from tuning.served import Served
from tuning.simulate import simulate

TICKS_PER_S = 100
SEEDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One load.

    Attributes:
        per_s: requests a second that were sent.
        real, predicted: answers a second, the median and the 95th percentile of the latency in seconds.
        pace: how long the model's executions took under this load, as a multiple of what was predicted; a machine that
            shares its host is not always as fast.
        at_pace: as `predicted`, with service times of this pace: what the model of the batcher itself is off by.
        batch: rows of an execution on average, real and predicted, of the model that batches.
        others: cores that something else took meanwhile.
        wrong: requests that were not answered rightly.
    """

    name: str
    per_s: float
    real: tuple[float, float, float]
    predicted: tuple[float, float, float]
    pace: float
    at_pace: tuple[float, float, float]
    batch: tuple[float, float]
    others: float
    wrong: int

    @property
    def off(self) -> tuple[float, float, float]:
        """By how much the prediction is off, as a share of the real value."""
        return self._off(self.predicted)

    @property
    def off_at_pace(self) -> tuple[float, float, float]:
        """The same of the prediction at the pace of the load."""
        return self._off(self.at_pace)

    @property
    def worst(self) -> float:
        """The largest of `off`, without its sign."""
        return max(abs(one) for one in self.off)

    @property
    def worst_at_pace(self) -> float:
        """The largest of `off_at_pace`, without its sign."""
        return max(abs(one) for one in self.off_at_pace)

    def _off(self, predicted: tuple[float, float, float]) -> tuple[float, float, float]:
        pairs = zip(predicted, self.real, strict=True)
        return tuple(one / real - 1 for one, real in pairs)  # type: ignore[return-value]


def compare(
    name: str, served: Served, items: Sequence[Item], network: Network, model: str, times_s: Sequence[float]
) -> Compared:
    """Send requests at these times, and simulate the same."""
    predicted = [simulate(network, times_s, seed=seed) for seed in range(SEEDS)]
    seconds = times_s[-1] + 1e-6
    plan = LoadPlan(
        target=TritonTarget(url=f"grpc://{served.grpc}", items=tuple(items)),
        arrivals=Replay(times_s=tuple(times_s)),
        seconds=seconds,
        warmup_s=0.0,
        compare=False,
    )
    with Others(served) as others:
        result = run(plan)
    pace = pace_of(result.models[model], predicted[0].took_s[model])
    station = network.stations[model]
    paced = replace(station, times=station.times.slower(pace))
    network_at_pace = replace(network, stations={**network.stations, model: paced})
    return Compared(
        name=name,
        per_s=len(times_s) / seconds,
        real=speed_of(result),
        predicted=mean_speed(predicted),
        pace=pace,
        at_pace=mean_speed([simulate(network_at_pace, times_s, seed=seed) for seed in range(SEEDS)]),
        batch=(result.models[model].mean_batch, float(np.mean([one.mean_batch(model) for one in predicted]))),
        others=others.cores,
        wrong=len(result.records) - len(result.right),
    )


def pace_of(real: ModelCounts, predicted_s: Mapping[int, float]) -> float:
    """How much longer executions took than predicted, over the batch sizes that both had."""
    both = {rows: spent for rows, spent in real.batches.items() if rows in predicted_s}
    around_s = real.input.mean_s + real.output.mean_s
    took_s = sum(spent.seconds + spent.count * around_s for spent in both.values())
    expected_s = sum(spent.count * predicted_s[rows] for rows, spent in both.items())
    return took_s / expected_s if expected_s else 1.0


def mean_speed(outcomes: Sequence[Outcome]) -> tuple[float, float, float]:
    """Answers a second, median and 95th percentile of simulated runs, on average."""
    speeds = [predicted_speed(one) for one in outcomes]
    return tuple(np.mean(speeds, axis=0).tolist())


def speed_of(result: Result) -> tuple[float, float, float]:
    """Answers a second until the last one, median and 95th percentile, of a real run."""
    latency = result.latency_s
    last_s = max((one.ended_s for one in result.right), default=0.0)
    return len(result.right) / max(last_s, 1e-9), latency.p50, latency.p95


def predicted_speed(outcome: Outcome) -> tuple[float, float, float]:
    """The same of a simulated run, from the time of the first arrival's clock."""
    return outcome.throughput, outcome.latency_s(0.5), outcome.latency_s(0.95)


class Others:
    """How many cores of this machine were busy with something else, or taken by its host, during a `with`."""

    def __init__(self, served: Served) -> None:
        self._pid, self.cores = served.pid, 0.0

    def __enter__(self) -> Others:
        self._busy_s, self._own_s, self._wall_s = busy_s(), self._own(), uptime_s()
        return self

    def __exit__(self, *_: object) -> None:
        passed_s = max(1e-9, uptime_s() - self._wall_s)
        self.cores = max(0.0, (busy_s() - self._busy_s - (self._own() - self._own_s)) / passed_s)

    def _own(self) -> float:
        return cpu_s(self._pid) + sum(models_cpu_s(self._pid).values()) + time.process_time()


def busy_s() -> float:
    """Seconds that the cores of this machine were not idle, together, time taken by its host included."""
    values = [int(one) for one in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(values[:3]) + sum(values[5:8])) / TICKS_PER_S


def uptime_s() -> float:
    """Seconds that this machine runs."""
    return float(Path("/proc/uptime").read_text().split()[0])
