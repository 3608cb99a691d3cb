"""A load moment by moment. In: a Result. Out: Moments of equal length, at most MOST of them."""

from __future__ import annotations

from dataclasses import dataclass

from load.outcomes import Outcome
from load.results import Percentiles, Result

MOST, FEWEST = 60, 10
EACH = 5  # requests in a moment, if there are enough
LENGTHS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A stretch of a load.

    Attributes:
        start_s, end_s: of the stretch, from the beginning of the load.
        offered: requests that were to be sent in it.
        right, not_right: requests that ended in it.
        p50, p95: latency in seconds of the right answers to the requests that were to be sent in it.
    """

    start_s: float
    end_s: float
    offered: int
    right: int
    not_right: int
    p50: float
    p95: float


def timeline(result: Result) -> tuple[Moment, ...]:
    """The moments from the beginning to the end of the last request."""
    records = result.records
    end_s = max([result.seconds, *(one.ended_s for one in records)])
    most = min(MOST, max(FEWEST, len(records) // EACH))
    length_s = next((one for one in LENGTHS_S if end_s / one <= most), LENGTHS_S[-1])
    count = -int(-end_s // length_s)
    latencies: list[list[float]] = [[] for _ in range(count)]
    offered, right, not_right = ([0] * count for _ in range(3))
    for one in records:
        sent_in = min(count - 1, int(one.intended_s / length_s))
        ended_in = min(count - 1, int(one.ended_s / length_s))
        offered[sent_in] += 1
        if one.outcome is Outcome.RIGHT:
            right[ended_in] += 1
            latencies[sent_in].append(one.latency_s)
        else:
            not_right[ended_in] += 1
    moments = []
    for number in range(count):
        found = Percentiles.of(latencies[number])
        start_s = number * length_s
        moments.append(
            Moment(
                start_s=start_s,
                end_s=start_s + length_s,
                offered=offered[number],
                right=right[number],
                not_right=not_right[number],
                p50=found.p50,
                p95=found.p95,
            )
        )
    return tuple(moments)
