"""The pieces of one answer on their way out: the first at once, the last at once, others a gap apart at least.

In: text and logprobs, token by token. Out: responses.

A response costs Triton, this process and the client together about as much of a processor as a small model's token:
sent one by one, they would keep the engine from its work. Nobody reads faster than 25 pieces a second.
"""

import asyncio
from typing import Any

import llm_requests
from llm_replies import Replies


class Pieces:
    """What is new of one answer since its last response. Everything here runs in one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, replies: Replies, gap_s: float) -> None:
        self._loop, self._replies, self._gap_s = loop, replies, gap_s
        self._text, self._logprobs = "", list[Any]()
        self._due = loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str, logprobs: list[Any], *, is_last: bool) -> None:
        """Send it, with what waits, or let it wait, for the gap at most. The last one waits for `end`."""
        self._text += text
        self._logprobs += logprobs
        if not is_last and self._timer is None and (self._text or self._logprobs):
            if self._loop.time() >= self._due:
                self.send()
            else:
                self._timer = self._loop.call_at(self._due, self.send)

    def send(self) -> None:
        """Send what waits, if anything does."""
        text, logprobs = self._taken()
        if text or logprobs:
            self._replies.send(llm_requests.delta_tensors(text, logprobs))
            self._due = self._loop.time() + self._gap_s

    def end(self, finish_reason: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Send what waits together with how the answer ended: the last response."""
        last = llm_requests.last_tensors(*self._taken(), finish_reason, prompt_tokens, completion_tokens)
        self._replies.end(last)

    def _taken(self) -> tuple[str, list[Any]]:
        """What waits; it waits no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken = self._text, self._logprobs
        self._text, self._logprobs = "", []
        return taken
