"""Workers that are killed between every two steps of their work, on the real broker."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from worker.errors import BrokerError
from worker.messages import Answer
from worker.outbox import Transactional, transactional_producer

PROGRAM = Path(__file__).parent / "programs" / "dying_worker.py"
MESSAGES, IN_FLIGHT = 24, 3


async def start(settings: dict[str, Any], step: str, times: int) -> asyncio.subprocess.Process:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, str(PROGRAM), json.dumps(settings), step, str(times)]
    return await asyncio.create_subprocess_exec(*words, env=environment, stdout=asyncio.subprocess.PIPE)


async def die_and_be_replaced(topics: Any, url: str, step: str, times: int, **more: Any) -> list[Any]:
    """The records of the outbound topic after one worker has died at a step and another has done the rest."""
    run = f"crash.{step.replace(' ', '-')}.{uuid.uuid4().hex}"  # a test that is run again finds nothing of before
    inbound, outbound, dead = (f"{run}.{kind}" for kind in ("in", "out", "dead"))
    await topics.create(inbound, outbound, dead)
    question = json.dumps({"prompt": "x", "words": 1}).encode()
    await topics.send(inbound, [(f"k{number}".encode(), question, []) for number in range(MESSAGES)])
    settings = {"brokers": topics.brokers, "inbound": inbound, "outbound": outbound, "dead_letter": dead}
    settings |= {"group": run, "url": url, "pipeline": "llm", "in_flight": IN_FLIGHT}
    settings |= {"commit_s": 0.1, "session_timeout_s": 3.0, **more}
    first = await start(settings, step, times)
    assert await first.wait() == -signal.SIGKILL
    if more.get("exactly_once"):
        await topics.forget(run)
    second = await start(settings, step, 0)
    try:
        assert second.stdout is not None
        assert (await second.stdout.readline()).startswith(b"ready: "), "the first may have left it nothing to do"
        found = await topics.read(outbound, lambda records: len({one.key for one in records}) == MESSAGES)
        second.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(second.wait(), 60) == 0, "it drains and leaves in good order"
    finally:
        if second.returncode is None:
            second.kill()
            await second.wait()
    return found


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.timing
def test_no_message_is_lost_wherever_a_worker_dies_and_only_those_in_flight_come_twice(
    topics: Any, llm_url: str, within: Callable
) -> None:
    steps = {"taken": 5, "answered": 5, "sent": 5, "committed": 1}  # a fast machine may do all before the first commit

    async def all_at_once() -> list[list[Any]]:
        return await asyncio.gather(*(die_and_be_replaced(topics, llm_url, *step) for step in steps.items()))

    for step, records in zip(steps, within(all_at_once(), 240), strict=True):
        by_key = Counter(one.key for one in records)
        twice = [key for key, times in by_key.items() if times > 1]
        if step != "committed":  # that one may have sent any number while its commit was on its way
            assert len(twice) <= 5 + IN_FLIGHT, (step, by_key)
        sources = {(one.key, dict(one.headers)["tritonkit-source"]) for one in records}
        assert len(sources) == MESSAGES, "a repeated result has the key and the source of the first"
        if step == "sent":
            assert twice, "a result that was sent and not committed comes again: that is what at least once means"


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.timing
def test_with_transactions_every_result_is_there_once_wherever_a_worker_dies(
    transactional_topics: Any, llm_url: str, within: Callable
) -> None:
    steps = {"taken": 5, "answered": 5, "sent": 5, "produced": 2, "offset added": 2, "committed": 2}

    async def all_at_once() -> list[list[Any]]:
        # Six seconds are the shortest session that Kafka itself allows, and this broker insists on it.
        more = {"exactly_once": True, "session_timeout_s": 6.0}
        works = (die_and_be_replaced(transactional_topics, llm_url, *step, **more) for step in steps.items())
        return await asyncio.gather(*works)

    for step, records in zip(steps, within(all_at_once(), 240), strict=True):
        by_key = Counter(one.key for one in records)
        assert set(by_key.values()) == {1} and len(by_key) == MESSAGES, (step, by_key)


@pytest.mark.timing
def test_worker_that_was_taken_for_dead_commits_nothing_beside_its_successor(
    transactional_topics: Any, within: Callable
) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    run = f"fence.{uuid.uuid4().hex}"
    topics, partition = transactional_topics, TopicPartition(f"{run}.in", 0)

    async def live() -> tuple[bool, list[Any]]:
        await topics.create(f"{run}.in", f"{run}.out")
        make = transactional_producer(bootstrap_servers=topics.brokers)
        async with AIOKafkaConsumer(bootstrap_servers=topics.brokers, group_id=run) as consumer:
            consumer.assign([partition])
            dead, alive = (Transactional(consumer, make, run) for _ in range(2))
            for one, name in ((dead, b"dead"), (alive, b"alive")):
                await one.assigned({partition})
                await one.put(partition, 0, f"{run}.out", Answer(key=name, value=b"x", headers=()))
            with pytest.raises(BrokerError, match="another worker has taken it over"):
                await dead.commit({partition: 1})
            is_committed = await alive.commit({partition: 1})
            for one in (dead, alive):
                await one.close()
        return is_committed, await topics.read(f"{run}.out", lambda records: len(records) == 1)

    is_committed, records = within(live(), 30)
    gc.collect()  # what the shut-out producer leaves is told to the log here, not while Python 3.11 compiles something
    assert is_committed and [one.key for one in records] == [b"alive"]
