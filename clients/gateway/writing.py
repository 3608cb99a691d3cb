"""Answers of the language model as OpenAI's objects: whole, or as chunks of a stream."""

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from clients.errors import StreamBroken
from clients.gateway.likelihoods import in_chat, in_completion
from clients.gateway.metrics import Metrics
from clients.gateway.tool_calls import Call, Called
from clients.gateway.upstream import detections_json
from clients.values import Delta, Event, Finished, Heard, Seen, TokenLogprob

Events = AsyncGenerator[tuple[int, Event | Called], None]
Json = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Answer:
    """One choice, as far as it has come."""

    text: str = ""
    logprobs: tuple[TokenLogprob, ...] = ()
    calls: tuple[Call, ...] = ()
    reason: str = ""


class Form(Protocol):
    """How an endpoint writes a choice."""

    prefix: str
    whole: str
    chunk: str

    def first(self, place: int) -> Json | None: ...

    def delta(self, place: int, event: Delta, start: int) -> Json: ...

    def called(self, place: int, calls: Sequence[Call]) -> Json: ...

    def last(self, place: int, reason: str) -> Json: ...

    def choice(self, place: int, answer: Answer) -> Json: ...


class ChatForm:
    """The choices of /v1/chat/completions; top: how many likely tokens are told in the place of each."""

    prefix, whole, chunk = "chatcmpl-", "chat.completion", "chat.completion.chunk"

    def __init__(self, top: int = 0) -> None:
        self._top = top

    def first(self, place: int) -> Json | None:
        return self._piece(place, {"role": "assistant", "content": ""})

    def delta(self, place: int, event: Delta, start: int) -> Json:
        return self._piece(place, {"content": event.text}, logprobs=in_chat(event.logprobs, self._top))

    def called(self, place: int, calls: Sequence[Call]) -> Json:
        """The calls of tools, each with its place, as a stream tells them."""
        return self._piece(place, {"tool_calls": [{"index": at, **one.as_json()} for at, one in enumerate(calls)]})

    def last(self, place: int, reason: str) -> Json:
        return self._piece(place, {}, reason)

    def choice(self, place: int, answer: Answer) -> Json:
        message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.calls:
            message |= {"content": answer.text or None, "tool_calls": [one.as_json() for one in answer.calls]}
        logprobs = in_chat(answer.logprobs, self._top)
        return {"index": place, "message": message, "logprobs": logprobs, "finish_reason": answer.reason}

    def _piece(self, place: int, delta: Json, reason: str | None = None, logprobs: Json | None = None) -> Json:
        return {"index": place, "delta": delta, "logprobs": logprobs, "finish_reason": reason}


class CompletionForm:
    """The choices of /v1/completions."""

    prefix, whole, chunk = "cmpl-", "text_completion", "text_completion"

    def first(self, place: int) -> Json | None:
        return None

    def delta(self, place: int, event: Delta, start: int) -> Json:
        return self._piece(place, event.text, in_completion(event.logprobs, start), None)

    def called(self, place: int, calls: Sequence[Call]) -> Json:
        raise AssertionError("a completion has no tools")

    def last(self, place: int, reason: str) -> Json:
        return self._piece(place, "", None, reason)

    def choice(self, place: int, answer: Answer) -> Json:
        return self._piece(place, answer.text, in_completion(answer.logprobs, 0), answer.reason)

    def _piece(self, place: int, text: str, logprobs: Json | None, reason: str | None) -> Json:
        return {"index": place, "text": text, "logprobs": logprobs, "finish_reason": reason}


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
        answers = [Answer() for _ in range(count)]
        noticed: Json = {}
        async with aclosing(events):
            async for place, event in events:
                answer = answers[place]
                match event:
                    case Delta(text=text, logprobs=logprobs):
                        answer.text += text
                        answer.logprobs += logprobs
                    case Called(calls=calls):
                        answer.calls = calls
                    case Finished():
                        answer.reason = check_reason(event)
                        self._usage.add(place, event)
                    case Heard() | Seen():
                        noticed |= notice(event)
        choices = [self._form.choice(place, answer) for place, answer in enumerate(answers)]
        body = {**self._head, "object": self._form.whole, "choices": choices, "usage": self._usage.as_json()}
        return body | ({"tritonkit": noticed} if noticed else {})

    async def chunks(self, events: Events, *, with_usage: bool) -> AsyncGenerator[list[Json], None]:
        """The chunks of a stream, those together that one event brings.

        What was heard and seen comes first, beside the first choice's empty beginning.
        """
        written: dict[int, int] = {}  # characters of each choice that has begun
        async with aclosing(events):
            async for place, event in events:
                first = self._form.first(place)
                if isinstance(event, Heard | Seen):
                    written.setdefault(place, 0)
                    beginning = first or self._form.delta(place, Delta(text=""), 0)
                    yield [self._chunk(beginning, with_usage, tritonkit=notice(event))]
                    continue
                chunks = [self._chunk(first, with_usage)] if place not in written and first else []
                start = written.setdefault(place, 0)
                match event:
                    case Delta(text=text):
                        written[place] += len(text)
                        chunks.append(self._chunk(self._form.delta(place, event, start), with_usage))
                    case Called(calls=calls):
                        chunks.append(self._chunk(self._form.called(place, calls), with_usage))
                    case Finished():
                        self._usage.add(place, event)
                        chunks.append(self._chunk(self._form.last(place, check_reason(event)), with_usage))
                yield chunks
        if with_usage:
            yield [{**self._head, "object": self._form.chunk, "choices": [], "usage": self._usage.as_json()}]

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
    if event.reason not in ("stop", "length", "tool_calls"):
        raise StreamBroken("llm", f"the engine ended the answer: {event.reason}", "", "Ask again.")
    return event.reason
