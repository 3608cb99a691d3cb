"""Several streams of events become one, in the order in which the events come."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from clients.values import Event

AHEAD = 64  # events of all streams that wait for a reader; the streams stand still when it is slow
Streams = Sequence[AsyncGenerator[Event, None]]


async def merged(streams: Streams) -> AsyncGenerator[tuple[int, Event], None]:
    """(place of the stream, its next event); closing it closes all of them, and so does the first error of one."""
    queue: asyncio.Queue[tuple[int, Event] | BaseException | None] = asyncio.Queue(AHEAD)

    async def forward(place: int, stream: AsyncGenerator[Event, None]) -> None:
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    await queue.put((place, event))
        except Exception as error:
            await queue.put(error)
        await queue.put(None)

    tasks = [asyncio.create_task(forward(place, stream)) for place, stream in enumerate(streams)]
    try:
        running = len(tasks)
        while running:
            item = await queue.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                running -= 1
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
