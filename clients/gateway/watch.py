"""A streamed answer that ends when its model has gone.

When the process of a decoupled model dies, Triton 2.51 leaves its streams open for ever: only the caller's own time
limit would end them. Its supervisor unloads the model, which shows in the model's readiness. So a stream that is silent
is asked about.
"""

import asyncio
from collections.abc import AsyncGenerator

from clients.errors import ClientError
from clients.tensors import Response
from clients.transports import AsyncTransport, problems

SILENT_S = 1.0  # then the server is asked, and again after as long


async def watched(
    stream: AsyncGenerator[Response, None], transport: AsyncTransport, model: str
) -> AsyncGenerator[Response, None]:
    """The same responses; closing it closes the stream.

    Raises:
        StreamBroken: the model isn't loaded any more.
    """
    step: asyncio.Future[Response] | None = None
    try:
        while True:
            step = asyncio.ensure_future(anext(stream))
            while not (await asyncio.wait({step}, timeout=SILENT_S))[0]:
                if await has_gone(transport, model):
                    raise problems.broken(model, transport.endpoint, "the model was unloaded while it answered")
            yield step.result()
    except StopAsyncIteration:
        return
    finally:
        if step is not None and not step.done():
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
        await stream.aclose()


async def has_gone(transport: AsyncTransport, model: str) -> bool:
    """Whether the server answers that the model isn't loaded; a server that doesn't answer will break the stream."""
    try:
        return not await transport.is_ready(model, problems.PROBE_TIMEOUT_S)
    except ClientError:
        return False
