"""Answers that end when their model has gone.

When the process of a model dies that answers from a thread of its own, Triton 2.51 leaves its requests open for ever:
only the caller's own time limit would end them. Its supervisor unloads the model and loads it anew, which shows in the
model's readiness for some seconds. So a request that is silent is asked about.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from typing import TypeVar

from clients.errors import ClientError
from clients.tensors import Response
from clients.transports import AsyncTransport, problems

SILENT_S = 1.0  # then the server is asked, and again after as long
LEFT_S = 5.0  # for an answer that comes all the same: a step that it had behind it may have been the one that went

Value = TypeVar("Value")


async def awaited(answer: Awaitable[Value], transport: AsyncTransport, model: str) -> Value:
    """The answer; when this is cancelled, or fails, so is the wait for it.

    Raises:
        StreamBroken: the model was unloaded, and nothing came for some seconds more.
    """
    limit = asyncio.timeout(None)
    watch = Watch(limit, transport, model)
    try:
        async with limit:
            return await answer
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise problems.broken(model, transport.endpoint, "the model was unloaded while it answered") from error
    finally:
        watch.end()


class Watch:
    """Lets a limit be over when the model has gone; costs a timer while the answer is not silent."""

    def __init__(self, limit: asyncio.Timeout, transport: AsyncTransport, model: str) -> None:
        self._limit, self._transport, self._model = limit, transport, model
        self._asking: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(SILENT_S, self._begin)

    def end(self) -> None:
        self._timer.cancel()
        if self._asking:
            self._asking.cancel()

    def _begin(self) -> None:
        self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        while not await has_gone(self._transport, self._model):
            await asyncio.sleep(SILENT_S)
        await asyncio.sleep(LEFT_S)
        self._limit.reschedule(asyncio.get_running_loop().time())


async def watched(
    stream: AsyncGenerator[Response, None], transport: AsyncTransport, model: str
) -> AsyncGenerator[Response, None]:
    """The same responses, each `awaited`; closing it closes the stream."""
    try:
        while True:
            yield await awaited(anext(stream), transport, model)
    except StopAsyncIteration:
        return
    finally:
        await stream.aclose()


async def has_gone(transport: AsyncTransport, model: str) -> bool:
    """Whether the server answers that the model isn't loaded; a server that doesn't answer will break the stream."""
    try:
        return not await transport.is_ready(model, problems.PROBE_TIMEOUT_S)
    except ClientError:
        return False
