"""Answers that end when their model has gone.

When the process of a model dies that answers from a thread of its own, Triton 2.51 leaves its requests open for ever:
only the caller's own time limit would end them. Its supervisor unloads the model and loads it anew, which shows in the
model's readiness for some seconds. So a request that is silent is asked about.
"""

import asyncio
import math
import time
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
    step = asyncio.ensure_future(answer)
    gone_at = math.inf
    try:
        while not (await asyncio.wait({step}, timeout=SILENT_S))[0]:
            if gone_at == math.inf and await has_gone(transport, model):
                gone_at = time.monotonic()
            if time.monotonic() - gone_at >= LEFT_S:
                raise problems.broken(model, transport.endpoint, "the model was unloaded while it answered")
        return step.result()
    finally:
        if not step.done():
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)


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
