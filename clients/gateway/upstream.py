"""The calls of the Triton server that the endpoints need; each gives back a value or a stream of events.

Cancelling the task that waits, or closing a stream, cancels the work in the server.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import numpy as np

from clients import assistant, detect, transcribe
from clients.arrays import json_text, need, read_json, text
from clients.chains import Chains
from clients.errors import ClientError
from clients.gateway.watch import awaited, watched
from clients.lifelines import Lifelines
from clients.llm import read_chat_events
from clients.steps import run_async
from clients.tensors import Request, Response
from clients.transports import AsyncTransport, problems
from clients.values import Detections, Event, Finished, Transcript

Message = dict[str, Any]
READY_TIMEOUT_S = 2.0


class Upstream:
    """One Triton server."""

    def __init__(self, transport: AsyncTransport, timeout_s: float, chains: int = 1) -> None:
        self._transport, self._timeout_s = transport, timeout_s
        self._chains = Chains(chains)
        self._lifelines = Lifelines()

    async def transcribe(self, samples: np.ndarray, **options: Any) -> Transcript:
        """What is said; samples: float32 [n], mono, 16 kHz, -1 to 1."""
        return transcribe.read_transcript(await self._infer(transcribe.transcribe_request(samples, **options)))

    async def detect(self, image: bytes, **options: Any) -> Detections:
        """The objects in a picture; image: the bytes of its file."""
        return detect.read_detections(await self._infer(detect.detect_request(image, **options)))

    async def prompt(self, heard: Transcript | None, seen: Detections | None, question: str) -> list[Message]:
        """The chat messages that say what was heard, seen and asked, in the words of the served template."""
        tensors = [text("QUESTION", question)]
        if heard is not None:
            tensors.append(text("TRANSCRIPT", heard.text))
        if seen is not None:
            tensors.append(json_text("DETECTIONS", detections_json(seen)))
        response = await self._infer(Request(model="prompt", tensors=tuple(tensors)))
        messages: list[Message] = need(read_json(response, "MESSAGES"), "prompt", "MESSAGES")
        return messages

    def chat(
        self, messages: list[Message], sampling: dict[str, Any], arguments: dict[str, Any]
    ) -> AsyncGenerator[Event, None]:
        """The next message of a chat, as it is written; arguments: what the chat template is told besides."""
        told = [json_text("TEMPLATE_ARGUMENTS", arguments)] if arguments else []
        tensors = (json_text("MESSAGES", messages), json_text("SAMPLING_PARAMETERS", sampling), *told)
        return self._events(Request(model="llm", tensors=tensors), read_chat_events)

    def complete(self, prompt: str, sampling: dict[str, Any]) -> AsyncGenerator[Event, None]:
        """What follows a prompt, as it is written."""
        tensors = (text("PROMPT", prompt), json_text("SAMPLING_PARAMETERS", sampling))
        return self._events(Request(model="llm", tensors=tensors), read_chat_events)

    def ask(
        self, audio: np.ndarray | None, image: bytes | None, question: str, sampling: dict[str, Any]
    ) -> AsyncGenerator[Event, None]:
        """The answer to a question about a recording, a picture or both, by one call of the pipeline `assistant`."""
        request = assistant.ask_request(audio, image, question)
        kept = tuple(one for one in request.tensors if one.name != "SAMPLING_PARAMETERS")
        options = json_text("SAMPLING_PARAMETERS", sampling)
        return self._events(Request(model=request.model, tensors=(*kept, options)), assistant.read_events)

    async def are_ready(self, models: tuple[str, ...]) -> dict[str, bool]:
        """Which of the models are loaded; none of them when nobody answers."""
        return dict(zip(models, await asyncio.gather(*(self._is_ready(one) for one in models)), strict=True))

    async def sequences_at_once(self) -> int | None:
        """How many requests the engines work on at once: 0 if none says so, None if the server can't be asked."""
        copies = self._chains.copies("llm")
        try:
            found = [await self._transport.signature(copy, READY_TIMEOUT_S) for copy in copies]
            return sum(int(one.parameters.get("max_num_seqs", 0)) for one in found)
        except (ClientError, ValueError):
            return None

    async def close(self) -> None:
        """Cancels what is in flight and lets go of the connection."""
        await self._transport.close()

    async def _is_ready(self, model: str) -> bool:
        """Whether one of its copies is."""
        try:
            return any([await self._transport.is_ready(copy, READY_TIMEOUT_S) for copy in self._chains.copies(model)])
        except ClientError:
            return False

    async def _infer(self, request: Request) -> Response:
        return await self._chains.infer_async(request, self._answer)

    async def _answer(self, request: Request) -> Response:
        return await awaited(self._transport.infer(request, self._timeout_s), self._transport, request.model)

    async def _stream(self, request: Request) -> AsyncGenerator[Response, None]:
        held = await run_async(self._lifelines.attached(request, self._timeout_s), self._transport)
        stream = self._transport.stream(held, self._timeout_s)
        async with aclosing(watched(stream, self._transport, held.model)) as responses:
            async for response in responses:
                yield response

    async def _events(
        self, request: Request, read: Callable[[Response], Iterator[Event]]
    ) -> AsyncGenerator[Event, None]:
        is_finished = False
        async with aclosing(self._chains.stream_async(request, self._stream)) as responses:
            async for response in responses:
                for event in read(response):
                    is_finished = isinstance(event, Finished)
                    yield event
        if not is_finished:
            raise problems.broken(request.model, self._transport.endpoint, "the answer ended without a reason")


def detections_json(found: Detections) -> dict[str, Any]:
    """The detections as the models pass them on."""
    items = [{"label": one.label, "score": one.score, "box": list(one.box)} for one in found.items]
    return {"width": found.width, "height": found.height, "detections": items}


def dumps(value: Any) -> str:
    """JSON for an answer."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
