"""When requests are sent: by a clock whatever became of the earlier ones (open loop), or by callers who wait (closed).

In: a pattern. Out: times in seconds from the start, float64 [n], rising. The same seed gives the same times.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from load.errors import LoadError


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson:
    """Open loop: callers who do not know of each other, per_s of them a second on average."""

    per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Open loop: one request every 1 / per_s seconds."""

    per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Open loop: the times at which requests came once, in seconds from the start, rising."""

    times_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Closed loop: so many callers, each asking again as soon as it was answered."""

    callers: int


Open = Poisson | Fixed | Replay
Arrivals = Open | Closed


def arrival_times(arrivals: Open, seconds: float, seed: int) -> np.ndarray:
    """The times below `seconds`.

    Raises:
        LoadError: a rate that is no positive number.
    """
    if isinstance(arrivals, Replay):
        times = np.asarray(arrivals.times_s, dtype=np.float64)
        return times[times < seconds]
    if not 0 < arrivals.per_s < np.inf:
        raise LoadError("rate", f"{arrivals.per_s:g} a second", "a positive number is needed")
    if isinstance(arrivals, Fixed):
        return np.arange(0, round(seconds * arrivals.per_s)) / arrivals.per_s
    # Given their number, the arrivals of a Poisson process are uniform: no loop is needed.
    random = np.random.default_rng(seed)
    return np.sort(random.uniform(0, seconds, random.poisson(arrivals.per_s * seconds)))


def read_trace(path: Path, speed: float = 1.0) -> Replay:
    """The arrivals in a text file: one time in seconds a line, blank lines and # comments apart; the first becomes 0.

    Args:
        speed: 2 replays twice as fast.

    Raises:
        LoadError: a line that is no time, or no lines at all.
    """
    times: list[float] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        words = line.partition("#")[0].strip()
        if not words:
            continue
        try:
            times.append(float(words))
        except ValueError:
            raise LoadError(f"{path}, line {number}", repr(words), "a time in seconds is needed") from None
    if not times or not np.isfinite(times).all():
        raise LoadError(str(path), "no arrival times" if not times else "a time that is not finite", "seconds needed")
    rising = sorted(times)
    return Replay(times_s=tuple((time - rising[0]) / speed for time in rising))
