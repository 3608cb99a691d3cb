"""Numbers of a load as people read them. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from load.arrivals import Arrivals, Closed, Fixed, Poisson
from load.errors import WrongOption

UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def duration(seconds: float) -> str:
    """Three digits with a unit that fits them; a dash for what never came to be."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 1:
        milliseconds = seconds * 1000
        return f"{milliseconds:.{0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2}f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"


def brief(seconds: float) -> str:
    """A round duration, as on an axis."""
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms" if seconds else "0"


def rate(per_s: float) -> str:
    """Times a second."""
    return f"{per_s:,.0f}/s" if per_s >= 100 else f"{per_s:.1f}/s"


def share(part: float) -> str:
    """A share of 0 to 1; never shown as nothing, or as all, if it is not."""
    percent = part * 100
    text = f"{percent:.1f} %" if percent < 99.95 or part == 1 else f"{percent:.3f} %"
    return "< 0.1 %" if 0 < percent < 0.05 else text


def pattern(arrivals: Arrivals) -> str:
    """How requests came."""
    match arrivals:
        case Closed(callers=callers):
            return f"closed loop, {callers} caller{'s' if callers > 1 else ''}"
        case Poisson(per_s=per_s):
            return f"open loop, Poisson, {per_s:g}/s"
        case Fixed(per_s=per_s):
            return f"open loop, every {duration(1 / per_s)}"
    return f"open loop, {len(arrivals.times_s):,} arrivals replayed"


def read_duration(text: str) -> float:
    """Seconds, more than none, in a text such as 200ms or 0.2s.

    Raises:
        WrongOption: no such text.
    """
    found = re.fullmatch(r"([0-9.]+)\s*(us|ms|s)", text.strip())
    try:
        seconds = float(found[1]) * UNITS_S[found[2]] if found else 0.0
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise WrongOption("duration", repr(text), "a number with us, ms or s is needed, such as 200ms")
    return seconds


def read_shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """{"X": (1, 1024)} of `X:1,1024`; a name may have colons of its own.

    Raises:
        WrongOption: no such text.
    """
    found = {}
    for text in texts:
        name, _, dims = text.rpartition(":")
        if not name or not re.fullmatch(r"[1-9][0-9]*(,[1-9][0-9]*)*", dims):
            raise WrongOption("shape", repr(text), "NAME:DIMS is needed, such as X:1,1024")
        found[name] = tuple(map(int, dims.split(",")))
    return found


def read_share(text: str) -> float:
    """A share of 0 to 1 in a text such as 1% or 0.01.

    Raises:
        WrongOption: no such text.
    """
    words = text.strip()
    try:
        found = float(words.rstrip("% ")) / (100 if words.endswith("%") else 1)
    except ValueError:
        found = -1
    if not 0 <= found <= 1:
        raise WrongOption("share", repr(text), "a share such as 1% or 0.01 is needed")
    return found
