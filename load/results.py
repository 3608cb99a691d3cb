"""What a load found. Numbers about speed are of right answers only, and stand beside how many were not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from load.arrivals import Arrivals
from load.outcomes import Outcome, Record
from load.statistics import ModelCounts

NEAR = 0.8  # of what the generator can do: from here on it may be what limits
LATE_SHARE = 0.1  # of the median latency: sending later than that is no longer negligible


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Of times in seconds; infinite if there were none."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    worst: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Percentiles:
        """The percentiles of these values: each is one of them."""
        array = np.fromiter(values, dtype=np.float64)
        if not array.size:
            return cls(mean=math.inf, p50=math.inf, p90=math.inf, p95=math.inf, p99=math.inf, worst=math.inf)
        cuts = np.percentile(array, (50, 90, 95, 99, 100), method="inverted_cdf")
        p50, p90, p95, p99, worst = map(float, cuts)
        return cls(mean=float(array.mean()), p50=p50, p90=p90, p95=p95, p99=p99, worst=worst)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """The load generator itself.

    Attributes:
        cpu_share: of one core, that its busiest process used while it sent.
        late_s: how much later than intended requests were sent; of an open loop.
        ceiling_per_s: requests a second that it can send and read back with no model behind; None if not measured.
    """

    cpu_share: float
    late_s: Percentiles
    ceiling_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a load found.

    Attributes:
        names: of the items.
        arrivals: how requests came.
        seconds: how long they were sent and counted.
        sent: all requests by their start, those of the warm-up too; times from its end, so theirs are negative.
        alone_s: how long each item took when it was asked alone, before the load.
        is_compared: whether answers were compared.
        models: the server's own counts in that time: the asked models and their steps.
        models_problem: why the server did not tell them, if it did not.
        began: when, as text in ISO form.
    """

    names: tuple[str, ...]
    arrivals: Arrivals
    seconds: float
    sent: tuple[Record, ...]
    alone_s: tuple[float, ...]
    is_compared: bool
    models: Mapping[str, ModelCounts]
    models_problem: str
    generator: Generator
    began: str

    @property
    def records(self) -> tuple[Record, ...]:
        """The requests that count: those that were to be sent in the time."""
        return tuple(one for one in self.sent if one.intended_s >= 0)

    @property
    def right(self) -> tuple[Record, ...]:
        """The requests that were answered rightly."""
        return tuple(one for one in self.records if one.outcome is Outcome.RIGHT)

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """How many requests had each outcome."""
        counts = Counter(one.outcome for one in self.records)
        return {outcome: counts[outcome] for outcome in Outcome}

    @property
    def problems(self) -> Mapping[str, int]:
        """What went wrong, in words, and how often; the most frequent first."""
        return dict(Counter(f"{one.outcome}: {one.words}" for one in self.records if one.words).most_common())

    @property
    def offered_per_s(self) -> float:
        """Requests that were to be sent, a second."""
        return len(self.records) / self.seconds

    @property
    def per_s(self) -> float:
        """Right answers that came within the time, a second; a few of them to requests of the warm-up."""
        return sum(1 for _ in self._answered_in_time()) / self.seconds

    @property
    def error_rate(self) -> float:
        """Share of the requests that were not answered rightly, 0 to 1."""
        return 1 - len(self.right) / len(self.records) if self.records else 0.0

    @property
    def latency_s(self) -> Percentiles:
        """From when a request should have been sent to the end of its right answer."""
        return Percentiles.of(one.latency_s for one in self.right)

    @property
    def service_s(self) -> Percentiles:
        """The same from when it really was sent."""
        return Percentiles.of(one.ended_s - one.sent_s for one in self.right)

    @property
    def first_part_s(self) -> Percentiles | None:
        """To the first part of any kind, such as the transcript; None where nothing comes before the text."""
        times = [one.first_s - one.intended_s for one in self.right if one.token_s and one.first_s < one.token_s[0]]
        return Percentiles.of(times) if times else None

    @property
    def first_token_s(self) -> Percentiles | None:
        """From when a request should have been sent to the first text; None where nothing was streamed."""
        times = [one.token_s[0] - one.intended_s for one in self.right if one.token_s]
        return Percentiles.of(times) if times else None

    @property
    def between_tokens_s(self) -> Percentiles | None:
        """Between two parts of the text that follow each other; None where nothing was streamed."""
        times = [gap for one in self.right for gap in np.diff(one.token_s)]
        return Percentiles.of(times) if times else None

    @property
    def tokens_per_s(self) -> float:
        """Tokens that the models say they wrote in right answers, a second."""
        return sum(one.tokens for one in self._answered_in_time()) / self.seconds

    def _answered_in_time(self) -> Iterator[Record]:
        return (one for one in self.sent if one.outcome is Outcome.RIGHT and 0 <= one.ended_s <= self.seconds)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why these numbers may be those of the load generator and not of the server."""
        found = []
        own, median = self.generator, self.latency_s.p50
        if own.ceiling_per_s and self.per_s > NEAR * own.ceiling_per_s:
            share = self.per_s / own.ceiling_per_s
            found.append(f"the load generator itself can send {own.ceiling_per_s:,.0f}/s: this is {share:.0%} of it")
        if own.cpu_share > NEAR:
            found.append(f"the load generator used {own.cpu_share:.0%} of a core: it may be what limits")
        if math.isfinite(median) and own.late_s.p95 > LATE_SHARE * median and math.isfinite(own.late_s.p95):
            found.append(f"requests were sent late: 95 % within {own.late_s.p95 * 1000:.1f} ms of when they should")
        if self.models_problem:
            found.append(f"the server's own counts are missing: {self.models_problem}")
        if not self.is_compared:
            found.append("answers were not compared: a wrong one counts as right")
        return tuple(found)
