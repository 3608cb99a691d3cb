"""More requests than a gateway can answer, for a bounded time, and what became of each one of them.

    python -m benchmarks.overload model_repository --seconds 120 --times 3

Starts a server and a gateway of its own. First the capacity is measured: as many callers as are answered at once, each
asking again when it was answered. Then requests come at a multiple of that rate, whether or not the earlier ones were
answered. Each asks one of a few questions whose answers are known, so that a wrong answer shows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import aiohttp
import psutil

from benchmarks.peers.results import quantile
from benchmarks.system import System

THINGS = ("cup", "dog", "car", "person", "bicycle", "train", "sheep", "bowl")
LIMIT_S = 60.0  # after this a request counts as lost


@dataclass(slots=True)
class Tally:
    """What became of the requests. Every one of `sent` is in exactly one of the others."""

    sent: int = 0
    answered: int = 0
    refused: int = 0
    failed: int = 0
    wrong: int = 0
    lost: int = 0
    answer_s: list[float] = field(default_factory=list)
    refusal_s: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    def summary(self) -> dict[str, object]:
        """The counts, and how long it took, in seconds."""
        counts = {name: value for name, value in asdict(self).items() if isinstance(value, int)}
        times = {"answer": self.answer_s, "refusal": self.refusal_s}
        spans = {f"{name}_p{share}": quantile(values, share) for name, values in times.items() for share in (50, 95)}
        return {**counts, **spans, "statuses": dict(self.statuses)}


class Load:
    """Asks one gateway. url: its address, such as http://127.0.0.1:9000."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, f"{url}/v1/completions"
        self._expected: dict[str, str] = {}

    async def learn(self) -> None:
        """Asks every question once, alone."""
        for thing in THINGS:
            _, body = await self._ask(thing)
            self._expected[thing] = body["choices"][0]["text"]
        if len(set(self._expected.values())) != len(THINGS):
            raise RuntimeError("two questions have the same answer: a wrong one would not show")

    async def closed(self, callers: int, seconds: float) -> Tally:
        """`callers` at once, each asking again when it was answered."""
        tally, end = Tally(), time.monotonic() + seconds

        async def caller(first: int) -> None:
            number = first
            while time.monotonic() < end:
                await self._count(THINGS[number % len(THINGS)], tally)
                number += callers

        await asyncio.gather(*(caller(number) for number in range(callers)))
        return tally

    async def open(self, capacity_per_s: float, times: float, seconds: float) -> Tally:
        """`times` as many requests as can be answered, whatever became of the earlier ones.

        A capacity measured while something else took the processor is too low: then it is what is answered now.
        """
        tally, began = Tally(), time.monotonic()
        tasks = []
        due = began
        while due < began + seconds:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            tasks.append(asyncio.create_task(self._count(THINGS[len(tasks) % len(THINGS)], tally)))
            answered_per_s = tally.answered / max(1.0, time.monotonic() - began)
            due += 1 / (times * max(capacity_per_s, answered_per_s))
        await asyncio.gather(*tasks)
        return tally

    async def _count(self, thing: str, tally: Tally) -> None:
        tally.sent += 1
        began = time.monotonic()
        try:
            async with asyncio.timeout(LIMIT_S):
                status, body = await self._ask(thing)
        except TimeoutError:
            tally.lost += 1
            return
        except (aiohttp.ClientError, OSError) as error:
            tally.failed += 1
            tally.statuses[type(error).__name__] += 1
            return
        seconds = time.monotonic() - began
        tally.statuses[str(status)] += 1
        if status == 429:
            tally.refused += 1
            tally.refusal_s.append(seconds)
        elif status != 200:
            tally.failed += 1
        elif body["choices"][0]["text"] != self._expected[thing] or len(body["choices"]) != 1:
            tally.wrong += 1
        else:
            tally.answered += 1
            tally.answer_s.append(seconds)

    async def _ask(self, thing: str) -> tuple[int, dict]:
        prompt = f"Seen: 2 {thing}\nQuestion: What do you see?\nAnswer:\n"
        body = {"model": "llm", "prompt": prompt, "temperature": 0, "max_tokens": 24}
        async with self._session.post(self._url, json=body) as answer:
            return answer.status, await answer.json()


async def overload(
    url: str, *, times: float, seconds: float, callers: int, capacity_s: float, memory: Callable[[], int]
) -> dict[str, object]:
    """The whole measurement; memory: bytes that the processes under load have now."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        load = Load(session, url)
        await load.learn()
        normal = await load.closed(callers, capacity_s)
        per_s = normal.answered / capacity_s
        before = memory()
        under = await load.open(per_s, times, seconds)
        after = memory()
        began = time.monotonic()
        afterwards = Tally()
        await load._count(THINGS[0], afterwards)
        after_s = time.monotonic() - began
        again = await load.closed(callers, capacity_s)
        return {
            "capacity_per_s": round(per_s, 1),
            "offered_per_s": round(under.sent / seconds, 1),
            "normal": normal.summary(),
            "overload": under.summary(),
            "afterwards": {**afterwards.summary(), "after_s": round(after_s, 3)},
            "normal_again": again.summary(),
            "memory_before": before,
            "memory_after": after,
        }


def main() -> None:
    """Start, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--times", type=float, default=3.0, help="multiple of the capacity that is offered")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--most-in-flight", type=int, default=8, help="requests that the gateway lets in at once")
    parser.add_argument("--capacity-s", type=float, default=10.0, help="how long the capacity is measured")
    given = parser.parse_args()
    options = ("--most-in-flight", str(given.most_in_flight))
    with tempfile.TemporaryDirectory() as folder, System(given.repository, Path(folder), options) as system:
        found = asyncio.run(
            overload(
                system.gateway,
                times=given.times,
                seconds=given.seconds,
                callers=given.most_in_flight,
                capacity_s=given.capacity_s,
                memory=lambda: sum(map(resident, system.pids)),
            )
        )
    print(json.dumps(found, indent=2))


def resident(pid: int) -> int:
    """Bytes of memory that a process and everything below it has."""
    try:
        process = psutil.Process(pid)
        return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))
    except psutil.NoSuchProcess:
        return 0


if __name__ == "__main__":
    main()
