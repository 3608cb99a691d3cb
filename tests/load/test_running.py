"""What is counted: against a target that answers as slowly, and as wrongly, as the test says."""

from __future__ import annotations

import asyncio
import os
import selectors
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

import pytest

from load import Closed, Fixed, LoadError, LoadPlan, Outcome, Progress, Result, run
from load.clock import FineSelector
from load.outcomes import NoAnswer
from load.plan import Answer, Send


@dataclass(kw_only=True)
class Slow:
    """One at a time, `took_s` each; the n-th request to come (from 0) may be another story."""

    took_s: float = 0.001
    stories: dict[int, float | str] = field(default_factory=dict)  # other seconds, a text, or the name of an outcome
    names: tuple[str, ...] = ("one",)
    seen: Counter = field(default_factory=Counter)

    @contextmanager
    def prepared(self) -> Iterator[Slow]:
        yield self

    def counts(self) -> dict:
        return {}

    def cheapest(self) -> Slow:
        return Slow(took_s=0)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Send]:
        lock = asyncio.Lock()

        async def send(item: int) -> Answer:
            number = self.seen.total()
            self.seen[os.getpid()] += 1
            story = self.stories.get(number, self.took_s)
            async with lock:
                await asyncio.sleep(story if isinstance(story, float) else self.took_s)
            if isinstance(story, str) and story in list(Outcome):
                raise NoAnswer(Outcome(story), "as the test says")
            text = story if isinstance(story, str) else "right"
            return Answer(raw=text.encode(), read=lambda: {"TEXT": text})

        yield send


def loaded(target: Slow, **more: object) -> Result:
    """The target asked 50 times a second for half a second."""
    settings: dict = {"arrivals": Fixed(per_s=50), "seconds": 0.5, "warmup_s": 0.0, **more}
    return run(LoadPlan(target=target, **settings))


@pytest.mark.timing
def test_latency_counts_from_when_a_request_should_have_been_sent() -> None:
    # The third of the load (two came before, alone) holds up the server for 0.3 s: those that should have been answered
    # meanwhile wait, too. A load that only asks when it was answered would see one slow answer of 25.
    result = loaded(Slow(stories={4: 0.3}))
    held_up = [one for one in result.records if 0.05 < one.intended_s < 0.3]
    assert len(result.records) == 25 and result.error_rate == 0 and len(held_up) == 12
    assert all(one.intended_s + one.latency_s >= 0.33 for one in held_up)
    assert result.latency_s.p90 > 0.2


@pytest.mark.timing
def test_a_closed_loop_asks_again_only_when_it_was_answered() -> None:
    result = loaded(Slow(took_s=0.05), arrivals=Closed(callers=1))
    assert 2 <= len(result.records) <= 10
    starts = [one.sent_s for one in result.records]
    assert all(one.ended_s <= later + 1e-3 for one, later in zip(result.records, starts[1:], strict=False))


@pytest.mark.timing
def test_every_request_has_one_outcome_and_only_right_ones_count_for_speed() -> None:
    stories = {2: "another text", 3: "refused", 4: "failed", 5: 0.5}
    result = loaded(Slow(stories=stories), arrivals=Closed(callers=1), timeout_s=0.2)
    counts = dict(result.outcomes)
    assert counts[Outcome.WRONG] == counts[Outcome.REFUSED] == counts[Outcome.FAILED] == 1 <= counts[Outcome.LOST]
    assert sum(counts.values()) == len(result.records)
    # The last one may have been answered after the time.
    assert counts[Outcome.RIGHT] - round(result.per_s * result.seconds) in (0, 1)
    assert result.error_rate == pytest.approx(1 - counts[Outcome.RIGHT] / len(result.records))
    assert result.latency_s.worst < 0.2, "the lost one is no latency"
    assert "wrong: TEXT: 'another text' instead of 'right'" in result.problems


@pytest.mark.timing
def test_a_request_of_the_warm_up_does_not_count() -> None:
    result = loaded(Slow(stories={3: "another text"}), warmup_s=0.2)
    assert result.error_rate == 0 and len(result.records) == 25
    assert [one.outcome for one in result.sent if one.intended_s < 0].count(Outcome.WRONG) == 1
    assert min(one.intended_s for one in result.records) == pytest.approx(0, abs=1e-9)


def test_a_model_that_answers_differently_each_time_is_refused_unless_answers_are_not_compared() -> None:
    moody = Slow(stories={number: f"answer {number}" for number in range(100)})
    with pytest.raises(LoadError, match="the same answer twice is needed"):
        loaded(moody)
    result = loaded(replace(moody, seen=Counter()), compare=False)
    assert result.error_rate == 0
    assert result.warnings[-1] == "answers were not compared: a wrong one counts as right"


def test_an_input_that_is_not_even_answered_alone_is_an_error() -> None:
    with pytest.raises(LoadError, match="one: as the test says"):
        loaded(Slow(stories={0: "failed"}))


@pytest.mark.timing
def test_the_clock_is_finer_than_the_millisecond_of_asyncio() -> None:
    def waited(selector: selectors.BaseSelector) -> float:
        began = time.perf_counter()
        selector.select(0.0002)
        return time.perf_counter() - began

    with FineSelector() as fine, selectors.EpollSelector() as coarse:
        assert 0.0002 <= min(waited(fine) for _ in range(50)) < 0.0009
        assert min(waited(coarse) for _ in range(50)) > 0.0009, "no longer so: FineSelector is not needed any more"


@pytest.mark.timing
def test_progress_is_told_while_it_goes() -> None:
    told: list[Progress] = []
    plan = LoadPlan(target=Slow(), arrivals=Fixed(per_s=50), seconds=0.6, warmup_s=0.1)
    result = run(plan, told.append)
    assert told[0].doing == "learning" and told[-1].ended == told[-1].sent == len(result.sent)
    assert any(0 < one.ended < len(result.sent) and one.recent_s for one in told)


def test_a_plan_that_makes_no_sense_is_refused() -> None:
    for wrong in ({"seconds": 0}, {"workers": 0}, {"timeout_s": 0}, {"warmup_s": -1}, {"target": Slow(names=())}):
        with pytest.raises(LoadError):
            loaded(**{"target": Slow(), **wrong})
    with pytest.raises(LoadError, match="one each"):
        loaded(Slow(), arrivals=Closed(callers=1), workers=2)
