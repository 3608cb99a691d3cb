"""Sends ready-made HTTP bodies to a Triton server: /infer, or /generate_stream for models that stream."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from clients.endpoint import Endpoint
from clients.transports.headers import http_headers
from clients.transports.http_messages import (
    HEADER_LENGTH,
    error_words,
    generate_response,
    infer_response,
    sse_documents,
)
from load.outcomes import NoAnswer, Outcome
from load.plan import Answer, Send
from load.posts import BUFFER_BYTES, no_connection, outcome_of_status, session
from load.streams import StreamedAnswer

LIVE = "/v2/health/live"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBody:
    """One item, ready-made; header_length: of its JSON header, None for a streamed call."""

    model: str
    body: bytes
    header_length: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConnectable:
    """Everything to send. is_ceiling: send the same bytes with the question whether the server lives instead."""

    endpoint: Endpoint
    bodies: tuple[HttpBody, ...]
    is_ceiling: bool = False

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Send]:
        async with session() as http:

            async def send(item: int) -> Answer:
                one = self.bodies[item]
                try:
                    if self.is_ceiling:
                        return await _alive(http, f"{self.endpoint}{LIVE}", one)
                    where = f"{self.endpoint}/v2/models/{one.model}"
                    if one.header_length is None:
                        return await _streamed(http, f"{where}/generate_stream", one)
                    return await _infer(http, f"{where}/infer", one, one.header_length)
                except (aiohttp.ClientError, OSError) as error:
                    raise no_connection(error) from error

            yield send


async def _infer(http: aiohttp.ClientSession, url: str, one: HttpBody, header_length: int) -> Answer:
    headers = {HEADER_LENGTH: str(header_length), "Content-Type": "application/octet-stream", **http_headers()}
    async with http.post(url, data=one.body, headers=headers) as reply:
        raw = await reply.read()
        if reply.status != 200:
            raise NoAnswer(outcome_of_status(reply.status), f"HTTP {reply.status}: {error_words(raw)}")
        length = reply.headers.get(HEADER_LENGTH)
    return Answer(raw=raw, read=lambda: infer_response(raw, None if length is None else int(length)).outputs)


async def _streamed(http: aiohttp.ClientSession, url: str, one: HttpBody) -> Answer:
    answer = StreamedAnswer()
    async with http.post(url, data=one.body, headers=http_headers(), read_bufsize=BUFFER_BYTES) as reply:
        if reply.status != 200:
            words = error_words(await reply.read())
            raise NoAnswer(outcome_of_status(reply.status), f"HTTP {reply.status}: {words}")
        async for line in reply.content:
            for document in sse_documents([line]):
                if "error" in document:
                    raise NoAnswer(Outcome.FAILED, document["error"])
                answer.add(generate_response(document).outputs, time.monotonic())
    return answer.complete()


async def _alive(http: aiohttp.ClientSession, url: str, one: HttpBody) -> Answer:
    async with http.get(url, data=one.body) as reply:
        await reply.read()
        if reply.status != 200:
            raise NoAnswer(Outcome.FAILED, f"HTTP {reply.status}")
    return Answer(raw=b"", read=dict)
