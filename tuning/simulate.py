"""A run of a network over given arrivals, event by event: when each request is answered.

Whatever runs on the same processors shares them: while more cores are wanted than there are, everything slows down
alike. So two instances of a model on two cores, each with two threads, are not twice as fast, and a step that waits for
nothing still takes from the others. Runs are repeatable: one seed, one outcome.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuning.batcher import Batcher, Waiting
from tuning.network import Network, Station
from tuning.outcome import Outcome

NEVER = float("inf")
WAIT = ""  # where nothing is shared: work there takes its time


class Processors:
    """Cores that running work shares evenly, by a clock that slows down when more is wanted than there is."""

    def __init__(self, cores: float) -> None:
        self._cores, self._wanted = cores, 0.0
        self._now_s = self._clock = self.busy_s = 0.0
        self._ends: list[tuple[float, int, float, Callable[[float], None]]] = []

    def start(self, now_s: float, work_s: float, cores: float, done: Callable[[float], None], number: int) -> None:
        """Begin work that takes `work_s` when nothing else runs."""
        self.advance(now_s)
        self._wanted += cores
        heapq.heappush(self._ends, (self._clock + work_s, number, cores, done))

    def next_s(self) -> float:
        """When the next work ends if nothing else begins."""
        return self._now_s + (self._ends[0][0] - self._clock) / self._speed() if self._ends else NEVER

    def advance(self, now_s: float) -> None:
        """Move the clock on."""
        passed_s = now_s - self._now_s
        self._clock += passed_s * self._speed()
        self.busy_s += passed_s * min(self._wanted, self._cores)
        self._now_s = now_s

    def finish(self, now_s: float) -> None:
        """End the work that is due."""
        self.advance(now_s)
        self._clock, _, cores, done = heapq.heappop(self._ends)
        self._wanted = self._wanted - cores if self._ends else 0.0
        done(now_s)

    def _speed(self) -> float:
        return min(1.0, self._cores / self._wanted) if self._wanted > 0 else 1.0


@dataclass(slots=True, eq=False)
class Call:
    """One request at one step."""

    request: Request
    step: int
    rows: int
    queued_s: float = 0.0
    priority: int = 0


@dataclass(slots=True, eq=False)
class Request:
    """One request: when it came, and for each step how many others it still waits for."""

    number: int
    arrived_s: float
    missing: list[int]
    left: int
    priority: int = 0


@dataclass(slots=True)
class Seen:
    """What happened at one station."""

    sizes: dict[int, int] = field(default_factory=dict)
    queued_s: float = 0.0
    calls: int = 0
    busy_s: dict[int, float] = field(default_factory=dict)


class Simulation:
    """One run. `rows`, where given: for each arrival, the rows of each step; `priorities`: for each its level."""

    def __init__(
        self, network: Network, seed: int, rows: Sequence[Sequence[int]] = (), priorities: Sequence[int] = ()
    ) -> None:
        self.network, self._rows, self._priorities = network, rows, priorities
        self._random = random.Random(seed)
        self._share, self._drawn_s = self._random.random(), 0.0
        self._batchers = {name: Batcher(station.serving) for name, station in network.stations.items()}
        self._idle = {name: station.serving.instances for name, station in network.stations.items()}
        self._processors = {name: Processors(cores) for name, cores in {**network.capacity, WAIT: NEVER}.items()}
        self._consumers = [
            [place for place, step in enumerate(network.steps) if maker in step.after]
            for maker in range(len(network.steps))
        ]
        self._numbers = self.refused = 0
        self.answered: dict[int, float] = {}
        self.seen = {name: Seen() for name in network.stations}
        self.on_answer: Callable[[int, float], None] = lambda number, now_s: None

    def run(self, arrivals: Sequence[float]) -> Outcome:
        """Every request that arrives at these times, until all are answered. The list may grow meanwhile."""
        place, now_s, last_s = 0, 0.0, 0.0
        while True:
            coming = arrivals[place] if place < len(arrivals) else NEVER
            ending, processors = min((one.next_s(), name) for name, one in self._processors.items())
            waking, model = min((one.wakes_at, name) for name, one in self._batchers.items())
            now_s = min(coming, ending, waking)
            if now_s == NEVER or (coming == ending == NEVER and not any(map(len, self._batchers.values()))):
                break
            last_s = now_s
            if now_s == ending:
                self._processors[processors].finish(now_s)
            elif now_s == coming:
                self._arrive(place, now_s)
                place += 1
            else:
                self._batchers[model].look(now_s)
                self._feed(model, now_s)
        return self._outcome(arrivals, last_s)

    def _arrive(self, number: int, now_s: float) -> None:
        steps = self.network.steps
        priority = self._priorities[number] if self._priorities else 0
        request = Request(number, now_s, [len(step.after) for step in steps], len(steps), priority)

        def begin(then_s: float) -> None:
            for place, step in enumerate(steps):
                if not step.after:
                    self._enqueue(request, place, then_s)

        self._handle(self.network.before_s, now_s, begin)

    def _enqueue(self, request: Request, place: int, now_s: float) -> None:
        step = self.network.steps[place]
        rows = self._rows[request.number][place] if self._rows else step.rows

        def queue(then_s: float) -> None:
            call = Call(request, place, rows, then_s, request.priority)
            if self._batchers[step.model].put(call, then_s):
                self._feed(step.model, then_s)
            else:
                self.refused += 1

        self._work(WAIT, now_s, self.network.crossing_s, 0.0, queue)

    def _feed(self, model: str, now_s: float) -> None:
        """Give idle instances of a model what is ready."""
        batcher, station = self._batchers[model], self.network.stations[model]
        while self._idle[model]:
            calls: list[Any] = batcher.take(now_s)
            if not calls:
                return
            self._idle[model] -= 1
            self._execute(model, station, calls, now_s)

    def _execute(self, model: str, station: Station, calls: list[Waiting], now_s: float) -> None:
        rows = sum(call.rows for call in calls)
        takes_s = station.times.at(rows, self._draw(station.times.spell_s, now_s))
        seen = self.seen[model]
        seen.sizes[rows] = seen.sizes.get(rows, 0) + 1
        seen.queued_s += sum(now_s - call.queued_s for call in calls)
        seen.calls += len(calls)

        def free(then_s: float) -> None:
            self._idle[model] += 1
            self._batchers[model].release(then_s)
            self._feed(model, then_s)

        def done(then_s: float) -> None:
            seen.busy_s[rows] = seen.busy_s.get(rows, 0.0) + then_s - now_s
            for call in calls:
                self._answer(call, then_s)
            self._work(station.runs_on, then_s, station.times.after_s, station.times.cores, free)

        self._work(station.runs_on, now_s, takes_s, station.times.cores, done)

    def _draw(self, spell_s: float, now_s: float) -> float:
        """The share of executions that take no longer than the next one; as the last one's while a spell lasts."""
        passed_s, self._drawn_s = now_s - self._drawn_s, now_s
        if spell_s <= 0 or self._random.random() >= math.exp(-passed_s / spell_s):
            self._share = self._random.random()
        return self._share

    def _answer(self, call: Any, now_s: float) -> None:
        request = call.request
        request.left -= 1
        for place in self._consumers[call.step]:
            request.missing[place] -= 1
            if not request.missing[place]:
                self._enqueue(request, place, now_s)
        if not request.left:
            self._handle(self.network.after_s, now_s, lambda then_s: self._leave(request, then_s))

    def _leave(self, request: Request, now_s: float) -> None:
        self.answered[request.number] = now_s - request.arrived_s
        self.on_answer(request.number, now_s)

    def _handle(self, wait_s: float, now_s: float, done: Callable[[float], None]) -> None:
        """Let a request travel: some processor time, and a wait that needs none."""
        work_s = self.network.handling_s / 2
        self._work("cpu", now_s, work_s, 1.0, lambda then_s: self._work(WAIT, then_s, wait_s, 0.0, done))

    def _work(self, where: str, now_s: float, work_s: float, cores: float, done: Callable[[float], None]) -> None:
        """Do work on some processors; at once if there is none to do."""
        if work_s <= 0:
            done(now_s)
            return
        self._numbers += 1
        self._processors[where].start(now_s, work_s, cores, done, self._numbers)

    def _outcome(self, arrivals: Sequence[float], end_s: float) -> Outcome:
        return Outcome(
            latencies_s=tuple(self.answered[number] for number in sorted(self.answered)),
            arrivals=len(arrivals),
            refused=self.refused,
            seconds=end_s - (arrivals[0] if arrivals else 0.0),
            batches={name: dict(sorted(one.sizes.items())) for name, one in self.seen.items()},
            took_s={
                name: {rows: seconds / one.sizes[rows] for rows, seconds in one.busy_s.items()}
                for name, one in self.seen.items()
            },
            queued_s={name: one.queued_s / max(1, one.calls) for name, one in self.seen.items()},
            busy={name: one.busy_s / max(end_s, 1e-9) for name, one in self._processors.items() if name != WAIT},
        )


def simulate(network: Network, arrivals_s: Sequence[float], *, seed: int = 0, **more: Any) -> Outcome:
    """The outcome of requests that arrive at these times, in seconds from the start."""
    return Simulation(network, seed, **more).run(arrivals_s)


def simulate_closed(network: Network, callers: int, requests: int, *, seed: int = 0) -> Outcome:
    """The outcome of callers who each ask again as soon as they were answered, until so many requests are sent."""
    run = Simulation(network, seed)
    arrivals = [0.0] * min(callers, requests)

    def again(number: int, now_s: float) -> None:
        if len(arrivals) < requests:
            arrivals.append(now_s)

    run.on_answer = again
    return run.run(arrivals)
