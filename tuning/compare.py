"""A real load beside its simulation: the same arrivals, at the same times.

In: a network and the arrivals. Out: how far the model is off, and how much of the machine something else took
meanwhile: a comparison during which others worked says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from load.arrivals import Replay
from load.plan import LoadPlan
from load.results import Result
from load.running import run
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
        batch: rows of an execution on average, real and predicted, of the model that batches.
        others: cores that something else took meanwhile.
        wrong: requests that were not answered rightly.
    """

    name: str
    per_s: float
    real: tuple[float, float, float]
    predicted: tuple[float, float, float]
    batch: tuple[float, float]
    others: float
    wrong: int

    @property
    def off(self) -> tuple[float, float, float]:
        """By how much the prediction is off, as a share of the real value."""
        pairs = zip(self.predicted, self.real, strict=True)
        return tuple(predicted / real - 1 for predicted, real in pairs)  # type: ignore[return-value]

    @property
    def worst(self) -> float:
        """The largest of them, without its sign."""
        return max(abs(one) for one in self.off)


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
    return Compared(
        name=name,
        per_s=len(times_s) / seconds,
        real=speed_of(result),
        predicted=tuple(np.mean([predicted_speed(one) for one in predicted], axis=0).tolist()),
        batch=(result.models[model].mean_batch, float(np.mean([one.mean_batch(model) for one in predicted]))),
        others=others.cores,
        wrong=len(result.records) - len(result.right),
    )


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
