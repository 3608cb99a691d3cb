"""Sends what is due, when it is due, and notes what became of it: one process's share of a load.

In: a Share and a way to send. Out: Records. Runs in an event loop; each request is a task, so that one that waits
holds up no other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from load.answers import difference
from load.outcomes import NoAnswer, Outcome, Record
from load.plan import Answer, Connectable, Outputs, Send

TELL_S = 0.25
LEAD_S = 0.05  # between the word to begin and the first request


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one process sends.

    Attributes:
        times_s: when, in seconds from the start, those of the warm-up negative: float64 [n]; None in a closed loop.
        callers: how many in a closed loop.
        items: which one, for request 0, 1, ...; begins again at its end.
        warmup_s: how long before the start the first may be sent.
        seconds: how long after it; in a closed loop nothing is begun later.
        timeout_s: after this a request is lost.
        expected: the answer to each item; empty if answers are not compared.
    """

    times_s: np.ndarray | None
    callers: int
    items: np.ndarray
    warmup_s: float
    seconds: float
    timeout_s: float
    expected: tuple[Expected, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The answer that an item gave when it was asked alone."""

    raw: bytes
    outputs: Outputs

    def difference(self, answer: Answer) -> str:
        """What is different in an answer, in words; "" if nothing is."""
        if self.raw and answer.raw == self.raw:
            return ""
        return difference(self.outputs, answer.read())


@dataclass(slots=True)
class Tally:
    """How it goes, while it goes: for progress only."""

    began: float
    sent: int = 0
    ended: int = 0
    not_right: int = 0
    recent_s: list[float] = field(default_factory=list)  # latencies since it was last told


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What one process sent: its records, and the share of a core that it used meanwhile."""

    records: tuple[Record, ...]
    cpu_share: float


async def send_share(share: Share, connectable: Connectable, start: float, tell: Callable[[Tally], None]) -> Sent:
    """Sends one share in this process."""
    async with connectable.connect() as send:
        driver = Driver(share, send, start)
        cpu, wall = time.process_time(), time.monotonic()
        records = await driver.drive(tell)
        used = (time.process_time() - cpu) / max(1e-9, time.monotonic() - wall)
    return Sent(records=tuple(records), cpu_share=used)


class Driver:
    """Drives one share. send: sends one item. start: the end of the warm-up, by time.monotonic()."""

    def __init__(self, share: Share, send: Send, start: float) -> None:
        self._share, self._send, self._start = share, send, start
        self.tally = Tally(began=start - share.warmup_s)
        self._records: list[Record] = []
        self._number = 0

    async def drive(self, tell: Callable[[Tally], None]) -> list[Record]:
        """Everything that became of the share's requests, after the last of them has ended."""
        telling = asyncio.create_task(self._tell(tell))
        try:
            async with asyncio.TaskGroup() as tasks:
                await asyncio.sleep(max(0.0, self.tally.began - time.monotonic()))
                if self._share.times_s is None:
                    for _ in range(self._share.callers):
                        tasks.create_task(self._call_again())
                else:
                    await self._send_in_time(tasks, self._share.times_s)
        finally:
            telling.cancel()
        tell(self.tally)
        return self._records

    async def _send_in_time(self, tasks: asyncio.TaskGroup, times_s: np.ndarray) -> None:
        for intended_s in times_s.tolist():
            wait_s = self._start + intended_s - time.monotonic()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            tasks.create_task(self._request(intended_s))

    async def _call_again(self) -> None:
        while (now_s := time.monotonic() - self._start) < self._share.seconds:
            await self._request(now_s)

    async def _request(self, intended_s: float) -> None:
        item = int(self._share.items[self._number % len(self._share.items)])
        self._number += 1
        self.tally.sent += 1
        sent_s = time.monotonic() - self._start
        answer, outcome, words = await attempt(self._send(item), self._share.timeout_s)
        ended_s = time.monotonic() - self._start
        if answer and self._share.expected:
            words = self._share.expected[item].difference(answer)
            outcome = Outcome.WRONG if words else Outcome.RIGHT
        record = Record(
            item=item,
            intended_s=intended_s,
            sent_s=sent_s,
            ended_s=ended_s,
            outcome=outcome,
            words=words,
            first_s=answer.first_s - self._start if answer and answer.first_s else 0.0,
            token_s=tuple(at - self._start for at in answer.token_s) if answer else (),
            tokens=answer.tokens if answer else 0,
        )
        self._records.append(record)
        self.tally.ended += 1
        self.tally.not_right += outcome is not Outcome.RIGHT
        self.tally.recent_s.append(record.latency_s)

    async def _tell(self, tell: Callable[[Tally], None]) -> None:
        while True:
            await asyncio.sleep(TELL_S)
            tell(self.tally)
            self.tally.recent_s.clear()


async def attempt(sending: Awaitable[Answer], timeout_s: float) -> tuple[Answer | None, Outcome, str]:
    """The answer, or why there is none."""
    try:
        async with asyncio.timeout(timeout_s):
            return await sending, Outcome.RIGHT, ""
    except TimeoutError:
        return None, Outcome.LOST, f"no complete answer within {timeout_s:g} s"
    except NoAnswer as problem:
        return None, problem.outcome, problem.words


async def asked_alone(send: Send, names: tuple[str, ...], timeout_s: float) -> Mapping[int, tuple[Answer, float]]:
    """Each item's answer and the seconds it took, asked one after the other.

    Raises:
        NoAnswer: an item gets no answer even so.
    """
    found: dict[int, tuple[Answer, float]] = {}
    for item, name in enumerate(names):
        began = time.monotonic()
        answer, outcome, words = await attempt(send(item), timeout_s)
        if answer is None:
            raise NoAnswer(outcome, f"{name}: {words}")
        found[item] = answer, time.monotonic() - began
    return found
