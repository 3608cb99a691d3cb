"""How long one execution takes: by batch size, with its spread, and how many cores it keeps busy.

Measured on a server or given as published figures; kept as JSON. Between two measured sizes it is interpolated,
quantile by quantile; beyond the largest it is continued along the last two.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from statistics import StatisticsError, correlation
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTimes:
    """Executions of one model.

    Attributes:
        seconds: by rows of the batch, durations of single executions, sorted; one will do where the spread is unknown.
        cores: cores that an execution keeps busy while it runs; 0 where it runs beside the CPU, on a GPU.
        after_s: how long the instance stays busy after its answers have left.
        spell_s: how long the machine stays as slow or fast as it is; 0 where each execution is drawn by itself.
    """

    seconds: Mapping[int, tuple[float, ...]]
    cores: float = 1.0
    after_s: float = 0.0
    spell_s: float = 0.0

    def __post_init__(self) -> None:
        ranked = {int(rows): tuple(sorted(self.seconds[rows])) for rows in sorted(self.seconds, key=int)}
        if not ranked or not all(ranked.values()) or min(ranked) < 1:
            raise ValueError(f"batch sizes {list(ranked)}: at least one size with at least one duration is needed")
        object.__setattr__(self, "seconds", ranked)

    def at(self, rows: int, share: float) -> float:
        """Seconds of a batch of so many rows that `share` (0 to 1) of the executions take at most."""
        sizes = list(self.seconds)
        place = bisect_left(sizes, rows)
        if place < len(sizes) and sizes[place] == rows:
            return quantile(self.seconds[rows], share)
        if len(sizes) == 1:
            return quantile(self.seconds[sizes[0]], share)
        low, high = max(0, min(place, len(sizes) - 1) - 1), max(1, min(place, len(sizes) - 1))
        first, second = sizes[low], sizes[high]
        before, after = quantile(self.seconds[first], share), quantile(self.seconds[second], share)
        return max(min(before, after) / 2, before + (after - before) * (rows - first) / (second - first))

    def mean(self, rows: int) -> float:
        """The mean of a batch of so many rows, in seconds."""
        return sum(self.at(rows, (place + 0.5) / 20) for place in range(20)) / 20

    def slower(self, factor: float) -> ServiceTimes:
        """The same on a machine that takes `factor` times as long."""
        seconds = {rows: tuple(one * factor for one in some) for rows, some in self.seconds.items()}
        return replace(self, seconds=seconds, after_s=self.after_s * factor)

    def as_json(self) -> dict[str, Any]:
        """As plain values; durations in microseconds."""
        return {
            "cores": round(self.cores, 3),
            "after_us": round(self.after_s * 1e6),
            "spell_us": round(self.spell_s * 1e6),
            "microseconds": {str(rows): [round(one * 1e6) for one in some] for rows, some in self.seconds.items()},
        }


def times_from(values: Mapping[str, Any]) -> ServiceTimes:
    """What `as_json` gave."""
    return ServiceTimes(
        seconds={int(rows): tuple(one / 1e6 for one in some) for rows, some in values["microseconds"].items()},
        cores=float(values["cores"]),
        after_s=float(values.get("after_us", 0)) / 1e6,
        spell_s=float(values.get("spell_us", 0)) / 1e6,
    )


def spell_of(executions: Sequence[tuple[float, int, float]]) -> float:
    """How long the machine stays as slow or fast as it is, in seconds; 0 if no longer than from one to the next.

    It shows in how alike neighbours in time are, each ranked among the executions of its size.

    Args:
        executions: when each began, its rows, how long it took; in the order of time.
    """
    if len(executions) < 3:
        return 0.0
    ranked: dict[int, list[float]] = {}
    for _, rows, took_s in executions:
        insort(ranked.setdefault(rows, []), took_s)
    shares = [(bisect_left(ranked[rows], took_s) + 0.5) / len(ranked[rows]) for _, rows, took_s in executions]
    try:
        likeness = correlation(shares[:-1], shares[1:])
    except StatisticsError:  # all took the same
        return 0.0
    if likeness <= 2 / sqrt(len(shares)):  # as chance makes it, too
        return 0.0
    apart_s = (executions[-1][0] - executions[0][0]) / (len(executions) - 1)
    return -apart_s / log(min(likeness, 0.99))


def quantile(ranked: Sequence[float], share: float) -> float:
    """The value below which a share of the sorted values lies, between neighbours interpolated."""
    place = share * (len(ranked) - 1)
    low = int(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (place - low)
