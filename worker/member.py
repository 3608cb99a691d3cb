"""A worker from its start to its end: connects, joins the group, works, leaves."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any

from batch.calls import Caller, entries
from batch.running import Asking
from worker.errors import BrokerError
from worker.metrics import Metrics
from worker.outbox import Direct, Outbox, Transactional, transactional_producer
from worker.settings import Settings
from worker.working import Watch, Work, check_topics


async def work(
    settings: Settings,
    metrics: Metrics,
    *,
    said: Callable[[str], None] = print,
    watch: Watch = lambda step, message: None,
    until: asyncio.Event | None = None,
) -> None:
    """Works until the event is set, or without one until SIGTERM or SIGINT; the second signal ends it at once.

    An end that is asked for before the worker is ready comes at once: nothing is in flight yet.

    Raises:
        WorkerError, BatchError, ClientError: what was in flight comes again when the next worker takes over.
    """
    until = until or on_signals()
    async with contextlib.AsyncExitStack() as stack:
        joining, ended = asyncio.create_task(join(settings, metrics, watch, stack)), asyncio.create_task(until.wait())
        try:
            await asyncio.wait((joining, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            joining.cancel()  # of no effect once it is done
            await asyncio.wait((joining,))
        if joining.cancelled():
            return
        job = joining.result()
        said(f"ready: {settings.inbound} -> {settings.pipeline} -> {settings.outbound}")
        await job.run(until)


async def join(settings: Settings, metrics: Metrics, watch: Watch, stack: contextlib.AsyncExitStack) -> Work:
    """A member of the group, once the server and the broker are there; the stack holds what it leaves them by."""
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import KafkaError

    from clients import connect_async

    client = await stack.enter_async_context(connect_async(settings.url, timeout_s=settings.timeout_s))
    await client.wait_for_ready(*entries(settings.pipeline), limit_s=settings.patience_s)
    caller = Caller(client, settings.pipeline, base=settings.files, only_below=True, **settings.options)
    asking = Asking(client, caller, patience_s=settings.patience_s)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.brokers,
        group_id=settings.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed" if settings.exactly_once else "read_uncommitted",
        session_timeout_ms=int(settings.session_timeout_s * 1000),
        heartbeat_interval_ms=int(settings.session_timeout_s * 100),
        # Back-pressure stops the fetching for as long as the server needs: that is no reason to leave the group.
        max_poll_interval_ms=int((settings.timeout_s * 3 + settings.patience_s + 60) * 1000),
    )
    try:
        stack.push_async_callback(consumer.stop)
        await check_topics([settings.inbound, settings.outbound, settings.dead_letter], settings.brokers)
        outbox = await outbox_for(settings, consumer, watch)
        stack.push_async_callback(outbox.close)
        job = Work(settings, asking, consumer, outbox, metrics, watch)
        consumer.subscribe([settings.inbound], listener=listener(job))
        await consumer.start()
    except KafkaError as error:
        raise BrokerError(f"{settings.brokers}: {error}. Is the broker there?") from error
    return job


async def outbox_for(settings: Settings, consumer: Any, watch: Watch) -> Outbox:
    """The way of the results to the broker, connected."""
    if settings.exactly_once:
        make = transactional_producer(bootstrap_servers=settings.brokers)
        return Transactional(consumer, make, settings.group, lambda step: watch(step, None))
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=settings.brokers, acks="all")
    await producer.start()
    return Direct(consumer, producer)


def listener(job: Work) -> Any:
    """What aiokafka calls when partitions come and go."""
    from aiokafka import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_assigned(self, assigned: Any) -> None:
            await job.assigned(set(assigned))

        async def on_partitions_revoked(self, revoked: Any) -> None:
            await job.revoked(set(revoked))

    return Listener()


def on_signals() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set; the second signal has its usual effect."""
    until, loop = asyncio.Event(), asyncio.get_running_loop()

    def first(number: signal.Signals) -> None:
        until.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, first, number)
    return until
