"""The loop: messages are taken, asked, answered, committed. Whatever happens in between, none is lost.

A message's offset is committed only after the broker has acknowledged its result or its dead letter (outbox.py). What
was in flight at a crash is delivered again: without transactions its result may then be on the outbound topic twice,
with the same key and the same tritonkit-source. Messages of one key are worked on one after the other, others at once.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from batch.errors import RowError
from batch.rows import Row
from batch.running import Asking
from clients.tracing import traced
from worker.errors import BrokerError, DrainTimeout
from worker.messages import Message, answer, dead_letter, fields_of, trace_of
from worker.metrics import Metrics
from worker.offsets import Offsets
from worker.outbox import Outbox
from worker.settings import Settings

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer, TopicPartition

POLL_MS = 200
# Called at every step: "taken", "answered", "sent", with transactions "produced" and "offset added", then "committed".
Watch = Callable[[str, Message | None], None]


class Work:
    """One member of the group at work."""

    def __init__(
        self,
        settings: Settings,
        asking: Asking,
        consumer: "AIOKafkaConsumer",
        outbox: Outbox,
        metrics: Metrics,
        watch: Watch = lambda step, message: None,
    ) -> None:
        self._settings = settings
        self._asking = asking
        self._consumer = consumer
        self._outbox = outbox
        self._metrics = metrics
        self._watch = watch
        self._offsets: dict[TopicPartition, Offsets] = {}
        self._keys: defaultdict[bytes, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: defaultdict[bytes, int] = defaultdict(int)
        self._tasks: dict[asyncio.Task[None], TopicPartition] = {}
        self._failure: BaseException | None = None
        self._committed_at = time.monotonic()

    async def run(self, until: asyncio.Event) -> None:
        """Works until the event is set, then finishes what is in flight and commits it.

        Raises:
            DrainTimeout: something did not finish in time.
            ServerLost: the server did not come back.
        """
        while not until.is_set() and self._failure is None:
            await self._take(self._settings.in_flight - len(self._tasks) - self._outbox.waiting)
            await self._commit_when_due()
        if self._failure is not None:
            await self._cancel()
            raise self._failure
        await self._drain(list(self._tasks), self._settings.drain_s)
        await self._commit()

    # -- partitions come and go ---------------------------------------------------------------------------------------

    async def assigned(self, partitions: set["TopicPartition"]) -> None:
        """These partitions are ours now."""
        await self._outbox.assigned(partitions)
        for partition in partitions:
            self._offsets.setdefault(partition, Offsets())

    async def revoked(self, partitions: set["TopicPartition"]) -> None:
        """These partitions go to another member: what is in flight of them is finished and committed before."""
        tasks = [task for task, partition in self._tasks.items() if partition in partitions]
        await self._drain(tasks, self._settings.session_timeout_s / 2, strict=False)
        await self._commit()
        for partition in partitions:
            self._offsets.pop(partition, None)
        await self._outbox.revoked(partitions)

    # -- steps --------------------------------------------------------------------------------------------------------

    async def _take(self, most: int) -> None:
        if most <= 0:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=POLL_MS / 1000, return_when=asyncio.FIRST_COMPLETED)
            if self._outbox.waiting:
                await self._commit()  # what waits takes the place of new messages
            return
        ours = [one for one in self._offsets if one in self._consumer.assignment()]
        if not ours:  # none, or none yet for which the outbox is ready
            await asyncio.sleep(POLL_MS / 1000)
            return
        records = await self._consumer.getmany(*ours, timeout_ms=POLL_MS, max_records=most)
        for partition, found in records.items():
            for record in found:
                self._begin(partition, record)
        await self._measure_lag()

    def _begin(self, partition: "TopicPartition", record: Any) -> None:
        message = Message(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
        )
        self._offsets[partition].take(message.offset)
        self._watch("taken", message)
        task = asyncio.create_task(self._do(partition, message))
        self._tasks[task] = partition
        task.add_done_callback(self._ended)
        self._metrics.in_flight.set(len(self._tasks))

    async def _do(self, partition: "TopicPartition", message: Message) -> None:
        began = time.monotonic()
        key = message.source.encode() if message.key is None else message.key
        self._waiting[key] += 1
        try:
            async with self._keys[key]:
                with traced(trace_of(message)):
                    outcome = await self._answer(partition, message)
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._keys[key]
        if partition in self._offsets:
            self._offsets[partition].finish(message.offset)
        self._metrics.messages.labels(outcome).inc()
        self._metrics.seconds.observe(time.monotonic() - began)

    async def _answer(self, partition: "TopicPartition", message: Message) -> str:
        from aiokafka.errors import MessageSizeTooLargeError

        settings = self._settings
        try:
            row = Row(key=message.source, number=message.offset, id=message.source, fields=fields_of(message))
            result = await self._asking.answer(row)
            self._watch("answered", message)
            given = answer(message, settings.pipeline, result)
            await self._outbox.put(partition, message.offset, settings.outbound, given)
            self._watch("sent", message)
            return "result"
        except RowError as error:
            reason = str(error)
        except MessageSizeTooLargeError as error:
            reason = f"the result is too large for {settings.outbound}: {error}"
        self._watch("answered", message)
        letter = dead_letter(message, settings.pipeline, reason)
        await self._outbox.put(partition, message.offset, settings.dead_letter, letter)
        self._watch("sent", message)
        return "dead_letter"

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._metrics.in_flight.set(len(self._tasks))
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()

    # -- offsets ------------------------------------------------------------------------------------------------------

    async def _commit_when_due(self) -> None:
        if time.monotonic() - self._committed_at >= self._settings.commit_s:
            await self._commit()

    async def _commit(self) -> None:
        self._committed_at = time.monotonic()
        due = {partition: offsets.to_commit() for partition, offsets in self._offsets.items()}
        wanted = {partition: offset for partition, offset in due.items() if offset is not None}
        if not wanted:
            return
        if not await self._outbox.commit(wanted):
            return
        for partition, offset in wanted.items():
            if partition in self._offsets:
                self._offsets[partition].committed(offset)
        self._metrics.commits.inc()
        self._watch("committed", None)

    async def _measure_lag(self) -> None:
        for partition, offsets in list(self._offsets.items()):
            if partition not in self._consumer.assignment():
                continue
            end = self._consumer.highwater(partition)
            if end is None:
                continue  # nothing was fetched of it yet
            lowest = offsets.lowest
            done = await self._consumer.position(partition) if lowest is None else lowest
            self._metrics.lag.labels(partition.topic, str(partition.partition)).set(max(0, end - done))

    async def _drain(self, tasks: list[asyncio.Task[None]], limit_s: float, *, strict: bool = True) -> None:
        if not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=limit_s)
        if self._failure is not None and strict:
            raise self._failure
        if left and strict:
            await self._commit()
            await self._cancel()
            raise DrainTimeout(f"{len(left)} messages did not finish within {limit_s:g} s; they come again")

    async def _cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))


async def check_topics(topics: list[str], brokers: str) -> None:
    """Raises BrokerError for a topic that is not there: sending would wait for it instead of saying so."""
    from aiokafka.admin import AIOKafkaAdminClient

    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    try:
        await admin.start()
        there = await admin.list_topics()
    finally:
        await admin.close()
    for topic in topics:
        if topic not in there:
            raise BrokerError(f"topic {topic}: not on {brokers}. Create it first.")
