"""Two workers of one group on the real broker: one joins while the other works, then the first leaves."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from worker.member import work
from worker.metrics import Metrics
from worker.settings import Settings

MESSAGES = 60


@pytest.mark.timing
@pytest.mark.server
def test_partitions_move_between_workers_in_good_order_without_a_duplicate(
    topics: Any, llm_url: str, within: Callable
) -> None:
    run = f"group.{uuid.uuid4().hex}"  # a test that is run again finds nothing of before
    settings = Settings(
        brokers=topics.brokers,
        inbound=f"{run}.in",
        outbound=f"{run}.out",
        dead_letter=f"{run}.dead",
        group=run,
        url=llm_url,
        pipeline="llm",
        in_flight=2,
        commit_s=0.1,
        session_timeout_s=3.0,
    )
    question = json.dumps({"prompt": "x", "words": 1, "pause_s": 0.25}).encode()

    async def live() -> tuple[list[Any], dict[str, int]]:
        await topics.create(settings.inbound, settings.outbound, settings.dead_letter)
        await topics.send(settings.inbound, [(b"k%d" % number, question, []) for number in range(MESSAGES)])
        done = {"first": 0, "second": 0}

        def counting(name: str) -> Callable[[str, Any], None]:
            def watch(step: str, message: Any) -> None:
                done[name] += step == "sent"

            return watch

        first_until, second_until = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(work(settings, Metrics(), watch=counting("first"), until=first_until))
        await until_true(lambda: done["first"] >= 4)
        second = asyncio.create_task(work(settings, Metrics(), watch=counting("second"), until=second_until))
        await until_true(lambda: done["second"] >= 4)
        first_until.set()  # in the middle of messages
        await first
        at_leave = dict(done)
        found = await topics.read(settings.outbound, lambda records: len({one.key for one in records}) == MESSAGES)
        second_until.set()
        await second
        return found, at_leave

    found, at_leave = within(live(), 240)
    assert at_leave["first"] + at_leave["second"] < MESSAGES, "the first left while there was work"
    assert [key for key, times in Counter(one.key for one in found).items() if times > 1] == []


async def until_true(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not is_so():
            await asyncio.sleep(0.02)
