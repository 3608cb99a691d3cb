"""Several streams of events become one, in the order in which the events come."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

AHEAD = 64  # events of all streams that wait for a reader; the streams stand still when it is slow
Item = TypeVar("Item")


async def merged(streams: Sequence[AsyncGenerator[Item, None]]) -> AsyncGenerator[tuple[int, Item], None]:
    """(place of the stream, its next event); closing it closes all of them, and so does the first error of one."""
    if len(streams) == 1:  # the usual case needs no task between the stream and its reader
        async with aclosing(streams[0]) as events:
            async for event in events:
                yield 0, event
        return
    queue: asyncio.Queue[tuple[int, Item] | BaseException | None] = asyncio.Queue(AHEAD)

    async def forward(place: int, stream: AsyncGenerator[Item, None]) -> None:
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
