"""Tuning a pipeline on a server that runs: measure its parts, let the model of the batcher propose, measure the whole.

In: a server with the pipeline loaded, and inputs. Out: a `Tuned`: settings, and real loads before and after them.
Nothing is written here, and the server keeps the better settings loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from load.arrivals import Poisson
from load.errors import LoadError
from load.inputs import random_items, signature_at
from load.plan import LoadPlan
from load.results import Result
from load.running import run
from load.triton import Item, TritonTarget
from tuning.arrivals import poisson
from tuning.measure import Measured, measure_batches, measure_pipeline
from tuning.modelled import network_of, on_cores, turnable_models, turned
from tuning.network import Network, steps_of
from tuning.search import Proposal, highest_rate, propose
from tuning.served import Served
from tuning.settings import THREADS, config_parts, config_with, serving_of
from tuning.simulate import simulate
from tuning.times import ServiceTimes

Tell = Callable[[str], None]
REACHED = 0.9  # of the rate that is simulated, to begin with
SLOWER = 0.7
TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for.

    Attributes:
        promise_s: what 95 % of the latencies shall not exceed.
        per_s: at which rate; None for the highest at which it can be kept.
        cores: of this machine.
        seconds: of each real load.
        repeats: executions of each batch size that are measured.
    """

    promise_s: float
    per_s: float | None = None
    cores: int = 2
    seconds: float = 15.0
    repeats: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """One real load: the settings it ran with, what came of it, and what the model had said: median and p95."""

    result: Result
    predicted_s: tuple[float, float]

    @property
    def p95_s(self) -> float:
        """The 95th percentile of the latency."""
        return self.result.latency_s.p95


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What came of it.

    Attributes:
        per_s: the rate of both loads.
        parts: by model, the parts of its config that change; empty if nothing was better.
        before, after: the loads; `after` is None if there was nothing to try.
        limits: requests a second that keep the promise by the model, before and after.
        configs: by model, what it was served with before.
        measured: service times, by model.
        measurements: how many loads and sets of executions were measured in all.
    """

    pipeline: str
    promise_s: float
    per_s: float
    parts: Mapping[str, Mapping[str, Any]]
    before: Loaded
    after: Loaded | None
    limits: tuple[float, float]
    configs: Mapping[str, Mapping[str, Any]]
    network: Network
    measured: Mapping[str, ServiceTimes] = field(default_factory=dict)
    measurements: int = 0


class Tuner:
    """One pipeline on one server."""

    def __init__(self, served: Served, pipeline: str, items: Sequence[Item], wish: Wish, tell: Tell) -> None:
        self._served, self._pipeline, self._items, self._wish, self._tell = served, pipeline, items, wish, tell
        self._config = served.config(pipeline)
        self._steps = steps_of(self._config)
        self._configs = {name: served.config(name) for name in dict.fromkeys(step.model for step in self._steps)}
        self._measurements = 0

    def tune(self) -> Tuned:
        """The whole of it."""
        alone = self._alone()
        singles = turnable_models(self._config, self._configs)
        rows = {name: self._row_of(name) for name in singles}
        times = {name: self._batches(name, item) for name, item in rows.items() if item}
        now = {name: measured[self._threads(name)] for name, measured in times.items()}
        network = network_of(self._config, self._configs, alone, now, self._wish.cores)
        may_turn = {
            name: turned(
                network.stations[name].serving,
                {threads: one.times[name] for threads, one in measured.items()},
                singles[name],
                self._sizes(name),
                self._wish.cores,
            )
            for name, measured in times.items()
        }
        limit = highest_rate(network, self._wish.promise_s)
        self._tell(f"as it is: {1000 * self._wish.promise_s:g} ms for 95 % up to {limit:.3g} requests a second")
        proposal = propose(network, may_turn, self._wish.promise_s, self._tell)
        return self._compared(network, proposal, limit, now, alone)

    def _alone(self) -> Measured:
        self._tell(f"{self._pipeline}: every step, one request after the other")
        self._measurements += 1
        repeats = max(8, self._wish.repeats)
        found = measure_pipeline(self._served, self._items, self._steps, repeats)
        for name, times in found.times.items():
            later = ", answered later" if name in found.later else ""
            self._tell(f"  {name}: {1000 * times.mean(1):.1f} ms, {times.cores:.2f} cores{later}")
        return found

    def _row_of(self, name: str) -> Item | None:
        """A request of one row for a model; None where sizes vary: nobody can say what a usual row is."""
        try:
            return random_items(signature_at(f"grpc://{self._served.grpc}", name), shapes={}, count=1)[0]
        except LoadError as error:
            self._tell(f"{name} stays as it is: {error}")
            return None

    def _batches(self, name: str, item: Item) -> dict[int, Measured]:
        """By number of threads, the executions of a model that batches. Loaded as before afterwards."""
        config = self._configs[name]
        found = {}
        now, most = self._threads(name), self._wish.cores
        for threads in sorted({now, *range(1, most + bool(now))}):  # 0 is all cores already
            self._tell(f"{name}: batches of {', '.join(map(str, self._sizes(name)))} with {threads or 'all'} threads")
            told = with_threads(config, threads)
            found[threads] = measure_batches(self._served, item, told, self._sizes(name), self._wish.repeats)
            self._measurements += 1
            times = on_cores(found[threads].times[name], self._wish.cores)
            each = ", ".join(f"{1000 * times.mean(rows):.1f}" for rows in self._sizes(name))
            self._tell(f"  {each} ms, {times.cores:.2f} cores")
            if config.get("backend") != "onnxruntime":
                break
        self._load({name: config})
        return found

    def _threads(self, name: str) -> int:
        return serving_of(self._configs[name]).threads

    def _sizes(self, name: str) -> tuple[int, ...]:
        """1, 2, 4 and so on, and the largest batch."""
        largest = int(self._configs[name]["max_batch_size"])
        return tuple(sorted({1 << power for power in range(largest.bit_length()) if 1 << power <= largest} | {largest}))

    def _compared(
        self, network: Network, proposal: Proposal, limit: float, now: Mapping[str, Measured], alone: Measured
    ) -> Tuned:
        """Real loads with the old and the proposed settings, at one rate: the highest proposed that holds in fact."""
        parts = {name: config_parts(serving, self._configs[name]) for name, serving in proposal.servings.items()}
        parts = {name: one for name, one in parts.items() if one}
        per_s = self._wish.per_s or REACHED * max(proposal.per_s, limit)
        if per_s <= 0:
            per_s = 0.5 / sum(times.mean(1) for times in alone.times.values())
        after = None
        if parts:
            self._load({name: config_with(self._configs[name], one) for name, one in parts.items()})
        words = "proposed" if parts else "as it is"
        before = self._loaded(words, proposal.network, per_s)
        for _ in range(TRIES):
            if before.p95_s <= self._wish.promise_s or self._wish.per_s:
                break
            per_s *= SLOWER
            before = self._loaded(words, proposal.network, per_s)
        if parts:
            after = before
            self._load({name: self._configs[name] for name in parts})
            before = self._loaded("as it was", network, per_s)
            if is_better(after, before):
                self._load({name: config_with(self._configs[name], one) for name, one in parts.items()})
            else:
                self._tell("the proposed settings are not better in fact: nothing changes")
                parts = {}
        return Tuned(
            pipeline=self._pipeline,
            promise_s=self._wish.promise_s,
            per_s=per_s,
            parts=parts,
            before=before,
            after=after,
            limits=(limit, proposal.per_s),
            configs=self._configs,
            network=proposal.network if parts else network,
            measured={**alone.times, **{name: one.times[name] for name, one in now.items()}},
            measurements=self._measurements,
        )

    def _loaded(self, words: str, network: Network, per_s: float) -> Loaded:
        seconds = self._wish.seconds
        outcome = simulate(network, poisson(per_s, max(seconds, 300 / per_s), 1), seed=1)
        predicted = (outcome.latency_s(0.5), outcome.latency_s(0.95))
        self._tell(f"{words}: {per_s:.3g} requests a second for {seconds:g} s")
        target = TritonTarget(url=f"grpc://{self._served.grpc}", items=tuple(self._items))
        self._measurements += 1
        result = run(LoadPlan(target=target, arrivals=Poisson(per_s=per_s), seconds=seconds, warmup_s=1.0))
        latency = result.latency_s
        self._tell(
            f"  p50 {1000 * latency.p50:.0f} ms, p95 {1000 * latency.p95:.0f} ms, {result.per_s:.3g} answers a second, "
            f"{result.error_rate:.1%} not right (predicted p95: {1000 * predicted[1]:.0f} ms)"
        )
        return Loaded(result=result, predicted_s=predicted)

    def _load(self, configs: Mapping[str, Mapping[str, Any]]) -> None:
        for name, config in configs.items():
            self._served.load(name, config)
        if self._pipeline not in configs:
            self._served.load(self._pipeline)


def is_better(after: Loaded, before: Loaded) -> bool:
    """Whether the same load was answered faster, and not less often rightly."""
    return after.p95_s < before.p95_s and after.result.error_rate <= before.result.error_rate + 0.01


def with_threads(config: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """A served config with so many threads an execution; 0 leaves it as it is."""
    return config_with(config, {"parameters": {THREADS: {"string_value": str(threads)}}} if threads else {})
