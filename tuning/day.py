"""A day of traffic, minute by minute, with GPUs that come and go with it, beside a fleet of fixed size.

In: what people ask over the day, what a GPU answers, how fast GPUs come. Out: GPU hours, and the minutes in which more
was asked than answered. Requests are drawn at random; one seed, one day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MINUTES = 1440


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How a fleet follows its load.

    Attributes:
        busy: the share of what the GPUs can do that is aimed at.
        start_minutes: until a new GPU answers: the machine, the image, the weights.
        stay_minutes: how long fewer GPUs must have been enough before one goes.
    """

    busy: float = 0.9
    start_minutes: int = 6
    stay_minutes: int = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day: requests and paid GPUs by minute, minutes in which too few answered, the share of requests too many."""

    asked: np.ndarray
    gpus: np.ndarray
    short_minutes: int
    late_share: float

    @property
    def gpu_hours(self) -> float:
        """GPU hours that are paid for."""
        return float(self.gpus.sum()) / 60


def requests_by_minute(peak_per_s: float, by_hour: Sequence[float], seed: int = 0) -> np.ndarray:
    """Requests in each minute of a day, int [1440]; between full hours the rate is interpolated."""
    hours = np.arange(MINUTES) / 60
    shares = np.interp(hours, np.arange(25), [*by_hour, by_hour[0]])
    return np.random.default_rng(seed).poisson(peak_per_s * 60 * shares)


def scaled_day(asked: np.ndarray, per_gpu_s: float, spare: int, scaling: Scaling) -> Day:
    """A fleet that follows: each minute it looks at the last five, and orders or sends away GPUs."""
    per_minute = per_gpu_s * 60
    first = max(1, math.ceil(asked[0] / per_minute / scaling.busy)) + spare
    running, wanted_before = first, [first] * scaling.stay_minutes
    ordered: list[int] = []  # minutes in which GPUs will answer
    counts = np.zeros(len(asked), dtype=np.int64)
    for minute in range(len(asked)):
        running += ordered.count(minute)
        ordered = [ready for ready in ordered if ready > minute]
        recent = asked[max(0, minute - 5) : minute]
        seen = float(recent.mean()) if len(recent) else float(asked[0])
        wanted = max(1, math.ceil(seen / per_minute / scaling.busy)) + spare
        wanted_before = [*wanted_before[1:], wanted]
        if wanted > running + len(ordered):
            ordered += [minute + scaling.start_minutes] * (wanted - running - len(ordered))
        running = min(running, max(max(wanted_before), 1 + spare))
        counts[minute] = running + len(ordered)  # a GPU that starts is paid for
    return _day(asked, counts, per_minute, ordered_minutes=scaling.start_minutes)


def fixed_day(asked: np.ndarray, gpus: int, per_gpu_s: float) -> Day:
    """A fleet of fixed size."""
    return _day(asked, np.full(len(asked), gpus, dtype=np.int64), per_gpu_s * 60)


def _day(asked: np.ndarray, gpus: np.ndarray, per_minute: float, ordered_minutes: int = 0) -> Day:
    answering = gpus.copy()
    if ordered_minutes:  # what was ordered less than so long ago does not answer yet
        for minute in range(len(gpus)):
            answering[minute] = gpus[max(0, minute - ordered_minutes) : minute + 1].min()
    over = np.maximum(0.0, asked - answering * per_minute)
    return Day(
        asked=asked,
        gpus=gpus,
        short_minutes=int((over > 0).sum()),
        late_share=float(over.sum() / max(1, asked.sum())),
    )


def compared(assumed: Mapping[str, Any], peak_per_s: float, per_gpu_s: float, fixed_gpus: int) -> tuple[Day, Day]:
    """The same day with a fixed fleet and with one that follows."""
    asked = requests_by_minute(peak_per_s, assumed["people"]["by_hour"])
    spare = int(assumed["spare_gpus"])
    return fixed_day(asked, fixed_gpus, per_gpu_s), scaled_day(asked, per_gpu_s, spare, Scaling())
