"""A plan comes in, its Result goes out: learn the answers, warm up, send, count.

One process sends from here; several are started, told when to begin, and waited for (worker.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from load.answers import difference
from load.arrivals import Closed, Replay, arrival_times
from load.clock import run_finely
from load.crew import sent_by_workers
from load.driving import LEAD_S, Expected, Sent, Share, Tally, asked_alone, send_share
from load.errors import LoadError
from load.outcomes import NoAnswer, Record
from load.plan import Answer, Connectable, LoadPlan
from load.results import Generator, Percentiles, Result

if TYPE_CHECKING:
    from load.statistics import ModelCounts

PICKS = 8192  # items are drawn this often, then again in the same order
CEILING_CALLERS = 32
CEILING_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How a load is going. doing: "learning", "warming up", "sending", "waiting"; recent_s: latencies of late."""

    doing: str
    elapsed_s: float = 0.0
    total_s: float = 0.0
    sent: int = 0
    ended: int = 0
    not_right: int = 0
    recent_s: tuple[float, ...] = ()


Report = Callable[[Progress], None]


def run(plan: LoadPlan, report: Report = lambda progress: None) -> Result:
    """The result of a load. Not to be called inside a running event loop.

    Args:
        report: called a few times a second with how it goes.

    Raises:
        ClientError: nobody is there, a model is not loaded, the plan can't be carried out.
    """
    began = datetime.now(UTC).isoformat(timespec="seconds")
    with plan.target.prepared() as connectable:
        report(Progress(doing="learning"))
        answers = run_finely(_learn(plan, connectable))
        if plan.compare:
            check_is_deterministic(plan, answers)
        expected = tuple(Expected(raw=one.raw, outputs=one.read()) for one, _ in answers[:-1]) if plan.compare else ()
        sent, models, problem = _send(plan, connectable, expected, report)
    records = all_records(sent)
    late = Percentiles.of(one.sent_s - one.intended_s for one in records if one.intended_s >= 0)
    return Result(
        names=plan.target.names,
        arrivals=plan.arrivals,
        seconds=plan.seconds,
        sent=records,
        alone_s=tuple(seconds for _, seconds in answers[:-1]),
        is_compared=plan.compare,
        models=models,
        models_problem=problem,
        generator=Generator(cpu_share=max(one.cpu_share for one in sent), late_s=late),
        began=began,
    )


def ceiling_per_s(plan: LoadPlan) -> float | None:
    """Requests a second that this generator can send and read back: the same bytes, but no model; None if unknown."""
    target = plan.target.cheapest()
    if target is None:
        return None
    callers = Closed(callers=max(CEILING_CALLERS, plan.workers))
    bare = replace(plan, target=target, arrivals=callers, seconds=CEILING_S, warmup_s=0.5, compare=False)
    with target.prepared() as connectable:
        sent, *_ = _send(bare, connectable, (), lambda progress: None)
    records = all_records(sent)
    if problem := next((one.words for one in records if one.words), ""):
        raise LoadError("ceiling", problem, "the server's cheapest call must answer")
    return sum(0 <= one.ended_s <= CEILING_S for one in records) / CEILING_S


def with_ceiling(result: Result, per_s: float | None) -> Result:
    """The same result that knows what the generator could have sent."""
    return replace(result, generator=replace(result.generator, ceiling_per_s=per_s))


async def _learn(plan: LoadPlan, connectable: Connectable) -> Sequence[tuple[Answer, float]]:
    """Every item's answer, and the first item's once more."""
    names = plan.target.names
    async with connectable.connect() as send:
        try:
            alone = await asked_alone(send, names, plan.timeout_s)
            again = await asked_alone(send, names[:1], plan.timeout_s)
        except NoAnswer as problem:
            raise LoadError("load", problem.words, "every input must be answered when it is asked alone") from None
    return [*(alone[item] for item in range(len(names))), again[0]]


def check_is_deterministic(plan: LoadPlan, answers: Sequence[tuple[Answer, float]]) -> None:
    """Raises LoadError if the first item, asked twice alone, had two answers."""
    words = difference(answers[0][0].read(), answers[-1][0].read())
    if words:
        advice = "Make the model repeat itself (temperature 0, or a seed), or don't compare answers."
        raise LoadError(plan.target.names[0], words, "the same answer twice is needed to tell a wrong one", advice)


def _send(
    plan: LoadPlan, connectable: Connectable, expected: tuple[Expected, ...], report: Report
) -> tuple[Sequence[Sent], Mapping[str, ModelCounts], str]:
    """What the processes sent, what the server counted meanwhile, and why it did not tell if it did not."""
    from load.watching import Watch

    shares = shares_of(plan, expected)
    telling = Telling(plan, len(shares), report)
    with closing(Watch(plan.target.counts)) as watch:

        def begins(start: float) -> None:
            if plan.warmup_s:
                watch.begin(start)

        if len(shares) > 1:
            sent = sent_by_workers(shares, connectable, telling, begins)
        else:
            start = time.monotonic() + LEAD_S + plan.warmup_s
            begins(start)
            sent = [run_finely(send_share(shares[0], connectable, start, lambda tally: telling(0, tally)))]
        models = watch.counts()
        return sent, models, watch.problem


def shares_of(plan: LoadPlan, expected: tuple[Expected, ...]) -> list[Share]:
    """The plan cut into one share for each worker."""
    workers, arrivals = plan.workers, plan.arrivals
    if isinstance(arrivals, Closed):
        times = None
    elif isinstance(arrivals, Replay):  # a trace has no warm-up: all of it counts
        times = arrival_times(arrivals, plan.seconds, plan.seed)
    else:
        times = arrival_times(arrivals, plan.warmup_s + plan.seconds, plan.seed) - plan.warmup_s
    callers = arrivals.callers if isinstance(arrivals, Closed) else 0
    drawn = np.random.default_rng(plan.seed + 1).integers(len(plan.target.names), size=PICKS)
    return [
        Share(
            times_s=None if times is None else times[worker::workers],
            callers=callers // workers + (worker < callers % workers),
            items=np.roll(drawn, -worker)[::workers] if workers > 1 else drawn,
            warmup_s=plan.warmup_s,
            seconds=plan.seconds,
            timeout_s=plan.timeout_s,
            expected=expected,
        )
        for worker in range(workers)
    ]


def all_records(sent: Sequence[Sent]) -> tuple[Record, ...]:
    """The records of all processes by their start."""
    return tuple(sorted((one for each in sent for one in each.records), key=lambda one: one.intended_s))


class Telling:
    """Adds up what the processes tell, and passes it on."""

    def __init__(self, plan: LoadPlan, workers: int, report: Report) -> None:
        self._plan, self._report = plan, report
        self._tallies: list[Tally | None] = [None] * workers

    def __call__(self, worker: int, tally: Tally) -> None:
        self._tallies[worker] = tally
        known = [one for one in self._tallies if one]
        elapsed_s, total_s = time.monotonic() - tally.began, self._plan.warmup_s + self._plan.seconds
        doing = "warming up" if elapsed_s < self._plan.warmup_s else "sending" if elapsed_s < total_s else "waiting"
        self._report(
            Progress(
                doing=doing,
                elapsed_s=elapsed_s,
                total_s=total_s,
                sent=sum(one.sent for one in known),
                ended=sum(one.ended for one in known),
                not_right=sum(one.not_right for one in known),
                recent_s=tuple(tally.recent_s),
            )
        )
