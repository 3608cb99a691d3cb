"""How results and offsets get to the broker: at least once, or exactly once where it has transactions.

Direct         a result goes out as soon as it is there, its offset is committed after it
Transactional  results wait until all messages before them are done, too; then they and the offset of the next message
               go out in one transaction: whoever reads committed records sees all of it once, or nothing
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from worker.errors import BrokerError
from worker.messages import Answer

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

LARGEST_BYTES = 2**20  # of one record, as producers and brokers have it by default
RECORD_BYTES = 512  # what a record has around key, value and headers, at most


class Outbox(Protocol):
    """Where a partition's results go."""

    async def assigned(self, partitions: set["TopicPartition"]) -> None:
        """These partitions are ours now; nothing of them has been taken yet."""

    async def revoked(self, partitions: set["TopicPartition"]) -> None:
        """They are not any more."""

    async def put(self, partition: "TopicPartition", offset: int, topic: str, record: Answer) -> None:
        """A message's result or dead letter; MessageSizeTooLargeError if the broker would not take it."""

    async def commit(self, due: Mapping["TopicPartition", int]) -> bool:
        """Everything below these offsets is done; False if somebody else has the partitions now."""

    @property
    def waiting(self) -> int:
        """Results that are not on the broker yet."""

    async def close(self) -> None:
        """Lets go of the broker."""


class Direct:
    """At least once."""

    waiting = 0

    def __init__(self, consumer: "AIOKafkaConsumer", producer: "AIOKafkaProducer") -> None:
        self._consumer, self._producer = consumer, producer

    async def assigned(self, partitions: set["TopicPartition"]) -> None: ...

    async def revoked(self, partitions: set["TopicPartition"]) -> None: ...

    async def put(self, partition: "TopicPartition", offset: int, topic: str, record: Answer) -> None:
        await self._producer.send_and_wait(topic, record.value, key=record.key, headers=list(record.headers))

    async def commit(self, due: Mapping["TopicPartition", int]) -> bool:
        from aiokafka.errors import CommitFailedError, IllegalStateError

        try:
            await self._consumer.commit(dict(due))
        except (CommitFailedError, IllegalStateError):
            return False  # a rebalance came between; whoever has the partition now does these messages again
        return True

    async def close(self) -> None:
        await self._producer.stop()


class Transactional:
    """Exactly once: a producer for each partition of messages, whose name shuts out whoever had the partition before.

    A worker that was taken for dead and lives would otherwise commit beside its successor.
    """

    def __init__(
        self,
        consumer: "AIOKafkaConsumer",
        producer_of: Callable[[str], "AIOKafkaProducer"],
        group: str,
        watch: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._consumer, self._producer_of, self._group, self._watch = consumer, producer_of, group, watch
        self._producers: dict[TopicPartition, AIOKafkaProducer] = {}
        self._held: defaultdict[TopicPartition, dict[int, tuple[str, Answer]]] = defaultdict(dict)

    @property
    def waiting(self) -> int:
        return sum(len(one) for one in self._held.values())

    async def assigned(self, partitions: set["TopicPartition"]) -> None:
        for partition in partitions - set(self._producers):
            producer = self._producer_of(f"{self._group}.{partition.topic}.{partition.partition}")
            await producer.start()  # ends or undoes what the one before has left open, and shuts it out
            self._producers[partition] = producer
            # Only now is it known what is committed; the consumer may have looked too early.
            offset = await self._consumer.committed(partition)
            if offset is None:
                await self._consumer.seek_to_beginning(partition)
            else:
                self._consumer.seek(partition, offset)

    async def revoked(self, partitions: set["TopicPartition"]) -> None:
        for partition in partitions:
            self._held.pop(partition, None)
            producer = self._producers.pop(partition, None)
            if producer is not None:
                await producer.stop()

    async def put(self, partition: "TopicPartition", offset: int, topic: str, record: Answer) -> None:
        from aiokafka.errors import MessageSizeTooLargeError

        size = len(record.key) + len(record.value or b"") + sum(len(name) + len(one) for name, one in record.headers)
        if size > LARGEST_BYTES - RECORD_BYTES:
            raise MessageSizeTooLargeError(f"{size:,} bytes")
        if partition in self._producers:  # else it went to another worker, which does the message again
            self._held[partition][offset] = (topic, record)

    async def commit(self, due: Mapping["TopicPartition", int]) -> bool:
        from aiokafka.errors import IllegalOperation, ProducerFenced

        for partition, offset in due.items():
            if partition not in self._producers:
                continue
            try:
                await self._commit(partition, offset)
            except (ProducerFenced, IllegalOperation) as error:  # the second is what a fenced one says from then on
                where = f"{partition.topic}/{partition.partition}"
                raise BrokerError(
                    f"{where}: another worker has taken it over ({error}). Start this one anew."
                ) from error
        return True

    async def _commit(self, partition: "TopicPartition", offset: int) -> None:
        held, producer = self._held[partition], self._producers[partition]
        ready = sorted(one for one in held if one < offset)
        async with producer.transaction():
            for one in ready:
                topic, record = held[one]
                await producer.send(topic, record.value, key=record.key, headers=list(record.headers))
            await producer.flush()
            self._watch("produced")
            await producer.send_offsets_to_transaction({partition: offset}, self._group)
            self._watch("offset added")
        for one in ready:
            del held[one]

    async def close(self) -> None:
        await self.revoked(set(self._producers))


def transactional_producer(**options: Any) -> Callable[[str], "AIOKafkaProducer"]:
    """Makes the producer of a name."""

    def make(name: str) -> "AIOKafkaProducer":
        from aiokafka import AIOKafkaProducer

        return AIOKafkaProducer(transactional_id=name, max_request_size=LARGEST_BYTES, **options)

    return make
