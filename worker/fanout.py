"""Results of the outbound topic go to everybody who listens on a WebSocket, each once.

ws://host:port/          every result from now on
ws://host:port/?key=K    those with this key

A result is one text frame: {"key": ..., "source": "topic/partition/offset", "result": ...}. A worker that crashed may
have sent one twice; the second is recognised by its source. A subscriber that reads too slowly is told so (close code
1013) instead of holding up the others.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import parse_qs, urlsplit

from worker.errors import BrokerError
from worker.messages import SOURCE

REMEMBERED = 100_000  # sources of the latest results
WAITING = 256  # results that may wait for one subscriber
TOO_SLOW = 1013


class Subscribers:
    """Who listens to what. Pure: frames go into queues."""

    def __init__(self, waiting: int = WAITING, remembered: int = REMEMBERED) -> None:
        self._queues: dict[asyncio.Queue[str | None], str | None] = {}
        self._waiting = waiting
        self._remembered = remembered
        self._seen: OrderedDict[str, None] = OrderedDict()

    def add(self, key: str | None) -> "asyncio.Queue[str | None]":
        """The frames of a new subscriber; None at the end means that it was too slow."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(self._waiting + 1)
        self._queues[queue] = key
        return queue

    def remove(self, queue: "asyncio.Queue[str | None]") -> None:
        """It does not listen any more."""
        self._queues.pop(queue, None)

    def __len__(self) -> int:
        return len(self._queues)

    def publish(self, key: str, source: str, result: Any) -> None:
        """Puts a result into the queue of each that wants it, unless it was there before."""
        if source in self._seen:
            return
        self._seen[source] = None
        if len(self._seen) > self._remembered:
            self._seen.popitem(last=False)
        frame = json.dumps({"key": key, "source": source, "result": result}, ensure_ascii=False)
        for queue, wanted in list(self._queues.items()):
            if wanted is not None and wanted != key:
                continue
            if queue.qsize() >= self._waiting:
                queue.put_nowait(None)
                self.remove(queue)
            else:
                queue.put_nowait(frame)


async def serve_results(
    brokers: str, topic: str, *, host: str, port: int, origins: Sequence[str], said: Any, until: asyncio.Event
) -> None:
    """Serves until the event is set.

    Args:
        origins: sites whose pages may listen, such as https://example.org; programs that are no browser always may.

    Raises:
        BrokerError: the broker can't be reached, or has no such topic.
    """
    from websockets.asyncio.server import serve

    subscribers = Subscribers()
    async with AsyncExitStack() as stack:
        consumer = await open_topic(brokers, topic)
        stack.push_async_callback(consumer.stop)
        allowed: Any = [None, *origins]
        server = await stack.enter_async_context(
            serve(lambda connection: attend(connection, subscribers), host, port, origins=allowed, max_size=1024)
        )
        said(f"ready: ws://{host}:{server.sockets[0].getsockname()[1]}  ({topic})")
        reading = asyncio.create_task(read_topic(consumer, subscribers))
        stopping = asyncio.create_task(until.wait())
        done, _ = await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        reading.cancel()
        stopping.cancel()
        if reading in done:
            reading.result()


async def open_topic(brokers: str, topic: str) -> Any:
    """A consumer at the end of all partitions of a topic; in no group, since every service sees everything."""
    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.errors import KafkaError

    # What a worker with transactions has undone was never there.
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, enable_auto_commit=False, isolation_level="read_committed")
    try:
        await consumer.start()
        await consumer._client.force_metadata_update()
        partitions = [TopicPartition(topic, one) for one in consumer.partitions_for_topic(topic) or ()]
        if not partitions:
            await consumer.stop()
            raise BrokerError(f"topic {topic}: not on {brokers}. Create it first.")
        consumer.assign(partitions)
        for partition, offset in (await consumer.end_offsets(partitions)).items():
            consumer.seek(partition, offset)
    except KafkaError as error:
        await consumer.stop()
        raise BrokerError(f"{brokers}: {error}. Is the broker there?") from error
    return consumer


async def read_topic(consumer: Any, subscribers: Subscribers) -> None:
    """Publishes record by record."""
    async for record in consumer:
        source = dict(record.headers).get(SOURCE, b"").decode("utf-8", "replace")
        key = (record.key or b"").decode("utf-8", "replace")
        try:
            result = json.loads(record.value or b"null")
        except ValueError:
            continue  # somebody else's record
        subscribers.publish(key, source or f"{record.topic}/{record.partition}/{record.offset}", result)


async def attend(connection: Any, subscribers: Subscribers) -> None:
    """One subscriber, until it goes or is too slow."""
    query = parse_qs(urlsplit(connection.request.path).query)
    queue = subscribers.add(query["key"][0] if "key" in query else None)
    gone = asyncio.create_task(connection.wait_closed())
    try:
        while True:
            frame = asyncio.create_task(queue.get())
            await asyncio.wait({frame, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                frame.cancel()
                return
            text = frame.result()
            if text is None:
                await connection.close(TOO_SLOW, "too slow: results did not wait")
                return
            await connection.send(text)
    finally:
        gone.cancel()
        subscribers.remove(queue)
