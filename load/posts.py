"""Load on any HTTP endpoint: each item is one POST. For gateways, and for what people would serve with instead."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp

from load.outcomes import NoAnswer, Outcome
from load.plan import Answer, Outputs, Send

if TYPE_CHECKING:
    from load.statistics import ModelCounts

BUFFER_BYTES = 2**20
OK = 200
REFUSALS = (429, 503)  # too many requests; unavailable for now


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One item: what is posted.

    Attributes:
        json_paths: the parts of a JSON answer that must be equal, such as "choices.0.text"; all of it if empty.
    """

    name: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    json_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PostTarget:
    """An endpoint and what is posted to it."""

    url: str
    posts: tuple[Post, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the items are called."""
        return tuple(post.name for post in self.posts)

    @contextmanager
    def prepared(self) -> Iterator[PostTarget]:
        """Nothing is to be done."""
        yield self

    def counts(self) -> Mapping[str, ModelCounts]:
        """Nothing is known of the server."""
        return {}

    def cheapest(self) -> None:
        """No call of an unknown server is known to be cheap."""
        return None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Send]:
        """Sends over connections that are kept."""
        async with session() as http:

            async def send(item: int) -> Answer:
                post = self.posts[item]
                try:
                    async with http.post(self.url, data=post.body, headers=post.headers) as reply:
                        raw = await reply.read()
                        if reply.status != OK:
                            words = raw[:200].decode(errors="replace")
                            raise NoAnswer(outcome_of_status(reply.status), f"HTTP {reply.status}: {words}")
                except (aiohttp.ClientError, OSError) as error:
                    raise no_connection(error) from error
                return Answer(raw=raw, read=lambda: read_json(raw, post.json_paths))

            yield send


def session() -> aiohttp.ClientSession:
    """A session that opens as many connections as there are requests in flight."""
    timeout = aiohttp.ClientTimeout(total=None)  # the load has its own
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)


def outcome_of_status(status: int) -> Outcome:
    """What an HTTP status other than 200 means."""
    return Outcome.REFUSED if status in REFUSALS else Outcome.FAILED


def no_connection(error: Exception) -> NoAnswer:
    """For what a connection broke with."""
    return NoAnswer(Outcome.FAILED, f"{type(error).__name__}: {error}")


def read_json(raw: bytes, paths: tuple[str, ...]) -> Outputs:
    """The parts of an answer at these paths; the whole under "body" if there are none, or it is no JSON."""
    try:
        document = json.loads(raw)
    except ValueError:
        return {"body": raw}
    return {path: _at(document, path) for path in paths} if paths else {"body": document}


def _at(document: Any, path: str) -> Any:
    for key in path.split("."):
        if isinstance(document, list):
            document = document[int(key)] if key.isdigit() and int(key) < len(document) else None
        else:
            document = document.get(key) if isinstance(document, dict) else None
    return document
