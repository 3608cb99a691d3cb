"""The same calls for asyncio; made by connect_async()."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np

from clients import assistant, detect, llm, transcribe
from clients.audio import Audio
from clients.base import BaseClient
from clients.client import Found
from clients.defaults import MAX_TOKENS, SAMPLE_RATE_HZ
from clients.image import Image
from clients.llm import Message
from clients.ready import wait_for_ready
from clients.signature import Signature, check_answers_once, request_for
from clients.steps import run_async
from clients.tensors import Request, Response
from clients.transports import AsyncTransport, problems
from clients.values import ChatEvent, Detections, Event, Finished, Transcript


class AsyncClient(BaseClient[AsyncTransport]):
    """Calls one server from one event loop. Every method does what Client's method of that name does.

    Reading and resampling files happens in a thread, so that the loop goes on. Cancelling the task that waits for an
    answer, or closing the generator of a streamed one (use contextlib.aclosing), stops the server.
    """

    async def transcribe(
        self,
        samples: Audio,
        *,
        sample_rate_hz: int = SAMPLE_RATE_HZ,
        language: str | None = None,
        task: transcribe.Task = "transcribe",
        mode: transcribe.Mode = "exact",
        timeout_s: float | None = None,
    ) -> Transcript:
        """What is said in a recording."""
        request = await asyncio.to_thread(
            transcribe.transcribe_request,
            samples,
            sample_rate_hz=sample_rate_hz,
            language=language,
            task=task,
            mode=mode,
        )
        return transcribe.read_transcript(await self._infer(request, timeout_s))

    async def detect(
        self,
        image: Image,
        *,
        confidence: float | None = None,
        iou: float | None = None,
        timeout_s: float | None = None,
    ) -> Detections:
        """The objects in a picture."""
        request = await asyncio.to_thread(detect.detect_request, image, confidence=confidence, iou=iou)
        return detect.read_detections(await self._infer(request, timeout_s))

    async def chat(
        self,
        messages: Sequence[Message] | str,
        *,
        max_tokens: int = MAX_TOKENS,
        timeout_s: float | None = None,
        **sampling: Any,
    ) -> AsyncGenerator[ChatEvent, None]:
        """The next message of a chat, as it is written."""
        request = llm.chat_request(messages, max_tokens=max_tokens, **sampling)
        async with aclosing(self._events(request, llm.read_chat_events, timeout_s)) as events:
            async for event in events:
                yield event

    async def ask(
        self,
        audio: Audio | None = None,
        image: Image | None = None,
        question: str = "",
        *,
        timeout_s: float | None = None,
        **options: Any,
    ) -> AsyncGenerator[Event, None]:
        """The answer to a question about a recording, a picture, both or neither, as it comes."""
        request = await asyncio.to_thread(assistant.ask_request, audio, image, question, **options)
        async with aclosing(self._events(request, assistant.read_events, timeout_s)) as events:
            async for event in events:
                yield event

    async def infer(
        self, model: str, inputs: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> Mapping[str, np.ndarray]:
        """The outputs of any model that answers once, by name."""
        signature = await self._signature(model, timeout_s)
        check_answers_once(signature)
        return (await self._infer(request_for(signature, inputs), timeout_s)).outputs

    async def stream(
        self, model: str, inputs: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> AsyncGenerator[Mapping[str, np.ndarray], None]:
        """The outputs of any model, response by response."""
        request = request_for(await self._signature(model, timeout_s), inputs)
        async with aclosing(self._stream(request, self._limit_s(timeout_s))) as responses:
            async for response in responses:
                yield response.outputs

    async def wait_for_ready(self, *models: str, limit_s: float = 60.0) -> None:
        """Returns when the server has loaded all these models; NotReady or Unreachable after limit_s."""
        self._check_open()
        await run_async(wait_for_ready(self._transport.endpoint, models, limit_s), self._transport)

    async def close(self) -> None:
        """Cancels what is in flight and leaves nothing behind, in this machine's shared memory or in the server."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._transport.close()
        if self._sharing:
            await asyncio.to_thread(self._sharing.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _infer(self, request: Request, timeout_s: float | None) -> Response:
        self._check_open()
        limit_s = self._limit_s(timeout_s)

        async def call(one: Request) -> Response:
            async with self._placed(one) as placed:
                return await self._transport.infer(placed, limit_s)

        return await self._chains.infer_async(request, call)

    def _stream(self, request: Request, limit_s: float) -> AsyncGenerator[Response, None]:
        self._check_open()

        async def call(one: Request) -> AsyncGenerator[Response, None]:
            held = await run_async(self._lifelines.attached(one, limit_s), self._transport)
            async with self._placed(held) as placed, aclosing(self._transport.stream(placed, limit_s)) as responses:
                async for response in responses:
                    yield response

        return self._chains.stream_async(request, call)

    async def _events(
        self, request: Request, read: Callable[[Response], Iterator[Found]], timeout_s: float | None
    ) -> AsyncGenerator[Found, None]:
        is_finished = False
        async with aclosing(self._stream(request, self._limit_s(timeout_s))) as responses:
            async for response in responses:
                for event in read(response):
                    is_finished = isinstance(event, Finished)
                    yield event
        if not is_finished:
            raise problems.broken(request.model, self._transport.endpoint, "the answer ended without a reason")

    @asynccontextmanager
    async def _placed(self, request: Request) -> AsyncIterator[Request]:
        if not self._sharing:
            yield request
            return
        names: list[str] = []
        try:
            yield await run_async(self._sharing.place(request, names), self._transport)
        finally:
            # Shielded: a task that is cancelled again while it cleans up must not leave regions behind.
            await asyncio.shield(run_async(self._sharing.release(names), self._transport))

    async def _signature(self, model: str, timeout_s: float | None) -> Signature:
        self._check_open()
        if model not in self._signatures:
            self._signatures[model] = await self._transport.signature(model, self._limit_s(timeout_s))
        return self._signatures[model]
