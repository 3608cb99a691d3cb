"""The load: callers that each ask again as soon as they were answered, and what became of every request.

In: `call`, which asks one contender, and cases with their right answers. Out: a `Tally`. An answer that is not the
right one is an error, however fast it came.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

LIMIT_S = 60.0  # after this a request has failed
ABSOLUTE, RELATIVE = 0.01, 0.002  # by how much two numbers of equal answers may differ: batches round differently


class Asked(Protocol):
    """What the driver must know of a case."""

    @property
    def expected(self) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back.

    Attributes:
        first_s: seconds until its first piece, where it was streamed.
    """

    value: Any
    first_s: float | None = None


Call = Callable[[Any], Awaitable[Answer]]


class Watch:
    """Notes when the first piece of a streamed answer came."""

    def __init__(self) -> None:
        self._began, self._first_s = time.perf_counter(), None
        self._pieces: list[str] = []

    def take(self, piece: str) -> None:
        """The next piece."""
        if piece and self._first_s is None:
            self._first_s = time.perf_counter() - self._began
        self._pieces.append(piece)

    def answer(self) -> Answer:
        """The whole."""
        return Answer(value={"text": "".join(self._pieces).strip()}, first_s=self._first_s)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of the requests of one round.

    Attributes:
        seconds: from the first request to the last answer.
        latency_s: of right answers, in order of their arrival.
        first_s: of right answers that were streamed.
        problem: the first wrong answer or failure, in words.
    """

    wrong: int = 0
    failed: int = 0
    seconds: float = 0.0
    latency_s: list[float] = field(default_factory=list)
    first_s: list[float] = field(default_factory=list)
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


async def closed_loop(call: Call, cases: Sequence[Asked], *, callers: int, seconds: float) -> Tally:
    """`callers` at once, each going round all cases from a place of its own, until the time is over."""
    tally, began = Tally(), time.perf_counter()

    async def caller(place: int) -> None:
        while time.perf_counter() < began + seconds:
            await _ask(call, cases[place % len(cases)], tally)
            place += 1

    await asyncio.gather(*(caller(place) for place in range(callers)))
    tally.seconds = time.perf_counter() - began
    return tally


async def _ask(call: Call, case: Asked, tally: Tally) -> None:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(LIMIT_S):
            answer = await call(case)
    except Exception as error:  # each contender's client raises its own
        tally.failed += 1
        tally.problem = tally.problem or f"{type(error).__name__}: {error}"[:300]
        await asyncio.sleep(0.01)  # one that refuses at once must not be asked in a tight loop
        return
    if not is_equal(case.expected, answer.value):
        tally.wrong += 1
        tally.problem = tally.problem or f"{answer.value!r} instead of {case.expected!r}"[:600]
        return
    tally.latency_s.append(time.perf_counter() - began)
    if answer.first_s is not None:
        tally.first_s.append(answer.first_s)


def is_equal(expected: Any, found: Any) -> bool:
    """Whether two answers say the same: texts exactly, numbers within rounding."""
    if isinstance(expected, dict):
        same = isinstance(found, dict) and expected.keys() == found.keys()
        return same and all(is_equal(value, found[key]) for key, value in expected.items())
    if isinstance(expected, list | tuple):
        same = isinstance(found, list | tuple) and len(expected) == len(found)
        return same and all(map(is_equal, expected, found))
    if isinstance(expected, float):
        return isinstance(found, int | float) and abs(expected - found) <= ABSOLUTE + RELATIVE * abs(expected)
    return bool(expected == found)
