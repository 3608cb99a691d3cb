"""Answers of the language model as OpenAI's objects: whole, or as chunks of a stream."""

import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from clients.errors import StreamBroken
from clients.gateway.metrics import Metrics
from clients.gateway.upstream import detections_json
from clients.values import Delta, Event, Finished, Heard, Seen

Events = AsyncGenerator[tuple[int, Event], None]
Json = dict[str, Any]


class Form(Protocol):
    """How an endpoint writes a choice."""

    prefix: str
    whole: str
    chunk: str

    def first(self, place: int) -> Json | None: ...

    def delta(self, place: int, text: str) -> Json: ...

    def last(self, place: int, reason: str) -> Json: ...

    def choice(self, place: int, text: str, reason: str) -> Json: ...


class ChatForm:
    """The choices of /v1/chat/completions."""

    prefix, whole, chunk = "chatcmpl-", "chat.completion", "chat.completion.chunk"

    def first(self, place: int) -> Json | None:
        return self._piece(place, {"role": "assistant", "content": ""}, None)

    def delta(self, place: int, text: str) -> Json:
        return self._piece(place, {"content": text}, None)

    def last(self, place: int, reason: str) -> Json:
        return self._piece(place, {}, reason)

    def choice(self, place: int, text: str, reason: str) -> Json:
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": place, "message": message, "logprobs": None, "finish_reason": reason}

    def _piece(self, place: int, delta: Json, reason: str | None) -> Json:
        return {"index": place, "delta": delta, "logprobs": None, "finish_reason": reason}


class CompletionForm:
    """The choices of /v1/completions."""

    prefix, whole, chunk = "cmpl-", "text_completion", "text_completion"

    def first(self, place: int) -> Json | None:
        return None

    def delta(self, place: int, text: str) -> Json:
        return {"index": place, "text": text, "logprobs": None, "finish_reason": None}

    def last(self, place: int, reason: str) -> Json:
        return {"index": place, "text": "", "logprobs": None, "finish_reason": reason}

    def choice(self, place: int, text: str, reason: str) -> Json:
        return {"index": place, "text": text, "logprobs": None, "finish_reason": reason}


@dataclass(slots=True, kw_only=True)
class Usage:
    """Tokens of one request. A prompt counts once, however many answers it gets."""

    answers_per_prompt: int
    metrics: Metrics
    prompt_tokens: dict[int, int] = field(default_factory=dict)
    completion_tokens: int = 0

    def add(self, place: int, event: Finished) -> None:
        self.prompt_tokens[place // self.answers_per_prompt] = event.prompt_tokens
        self.completion_tokens += event.completion_tokens
        self.metrics.tokens.labels("completion").inc(event.completion_tokens)
        if place % self.answers_per_prompt == 0:
            self.metrics.tokens.labels("prompt").inc(event.prompt_tokens)

    def as_json(self) -> Json:
        prompt = sum(self.prompt_tokens.values())
        total = prompt + self.completion_tokens
        return {"prompt_tokens": prompt, "completion_tokens": self.completion_tokens, "total_tokens": total}


class Writer:
    """Writes the answers to one request."""

    def __init__(self, form: Form, model: str, usage: Usage) -> None:
        self._form, self._usage = form, usage
        self._head = {"id": f"{form.prefix}{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    async def whole(self, events: Events, count: int) -> Json:
        """All answers at once."""
        texts: list[list[str]] = [[] for _ in range(count)]
        reasons = [""] * count
        noticed: Json = {}
        async with aclosing(events):
            async for place, event in events:
                if isinstance(event, Delta):
                    texts[place].append(event.text)
                elif isinstance(event, Finished):
                    reasons[place] = check_reason(event)
                    self._usage.add(place, event)
                else:
                    noticed |= notice(event)
        choices = [self._form.choice(at, "".join(texts[at]), reasons[at]) for at in range(count)]
        body = {**self._head, "object": self._form.whole, "choices": choices, "usage": self._usage.as_json()}
        return body | ({"tritonkit": noticed} if noticed else {})

    async def chunks(self, events: Events, *, with_usage: bool) -> AsyncGenerator[Json, None]:
        """The chunks of a stream. What was heard and seen comes first, beside the first choice's empty beginning."""
        begun: set[int] = set()
        async with aclosing(events):
            async for place, event in events:
                first = self._form.first(place)
                if isinstance(event, Heard | Seen):
                    begun.add(place)
                    yield self._chunk(first or self._form.delta(place, ""), with_usage, tritonkit=notice(event))
                    continue
                if place not in begun and first:
                    yield self._chunk(first, with_usage)
                begun.add(place)
                if isinstance(event, Delta):
                    yield self._chunk(self._form.delta(place, event.text), with_usage)
                else:
                    self._usage.add(place, event)
                    yield self._chunk(self._form.last(place, check_reason(event)), with_usage)
        if with_usage:
            yield {**self._head, "object": self._form.chunk, "choices": [], "usage": self._usage.as_json()}

    def _chunk(self, choice: Json, with_usage: bool, **more: Any) -> Json:
        body = {**self._head, "object": self._form.chunk, "choices": [choice], **more}
        return body | ({"usage": None} if with_usage else {})


def notice(event: Heard | Seen) -> Json:
    """What was heard or seen, as this gateway's own part of an answer."""
    if isinstance(event, Heard):
        return {"transcript": event.transcript}
    return {"detections": detections_json(event.detections)}


def check_reason(event: Finished) -> str:
    """OpenAI's reason for the end of an answer.

    Raises:
        StreamBroken: the engine gave up.
    """
    if event.reason not in ("stop", "length"):
        raise StreamBroken("llm", f"the engine ended the answer: {event.reason}", "", "Ask again.")
    return event.reason
