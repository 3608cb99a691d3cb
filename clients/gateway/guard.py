"""Stands before every route: who may ask, how much at once, how large, how long.

Plain ASGI. The whole body is read here, bounded in size and time; from then on the caller is watched, and when it goes
away the work for it is cancelled, down to the engine. A caller that doesn't read its answer is cut off as well.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from clients.gateway.keys import bearer_of, is_known
from clients.gateway.metrics import Metrics, route_of
from clients.gateway.problems import Problem
from clients.gateway.room import USUAL, Room
from clients.gateway.settings import Settings
from clients.tracing import TRACE_HEADERS, traced

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/", "/page.css", "/page.js", "/health")  # without a key: nothing of a model is behind them
FREE_PATHS = (*OPEN_PATHS, "/metrics", "/v1/models")  # answered even when too many requests are in flight
GONE = 499


class Gone(Exception):
    """The caller went away, or doesn't read what it asked for."""


class Guard:
    """The ASGI application around another."""

    def __init__(self, app: App, settings: Settings, metrics: Metrics, room: Room | None = None) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._room = room or Room(settings.most_in_flight or USUAL)
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = Answer(send, self._settings.send_timeout_s)
        began = time.monotonic()
        try:
            await self._guarded(scope, receive, answer)
        except Problem as problem:
            await self._tell(problem, scope, receive, answer)
        except Gone:
            answer.status = GONE
        route = route_of(scope["path"])
        self._metrics.requests.labels(route, str(answer.status)).inc()
        self._metrics.seconds.labels(route).observe(time.monotonic() - began)

    async def _guarded(self, scope: Scope, receive: Receive, answer: "Answer") -> None:
        check_host(scope, self._settings)
        check_key(scope, self._settings)
        if scope["path"] in FREE_PATHS:
            await self._watched(scope, receive, answer)
            return
        if self._in_flight >= self._room.most:
            self._metrics.refused.inc()
            found = f"{self._in_flight} requests are in flight, as many as are answered at once"
            raise Problem(429, f"{found}. Try again later.", code="too_many_requests")
        self._take(1)
        answer.at_end = lambda: self._take(-1)
        try:
            await self._watched(scope, receive, answer)
        finally:
            answer.end()

    def _take(self, count: int) -> None:
        self._in_flight += count
        self._metrics.in_flight.set(self._in_flight)

    async def _watched(self, scope: Scope, receive: Receive, answer: "Answer") -> None:
        """Runs the application; cancels it when the caller goes away."""
        body = await read_body(scope, receive, self._settings)
        with traced({name: header(scope, name.encode()) for name in TRACE_HEADERS}):
            work = asyncio.ensure_future(self._app(scope, replayed(body), answer))
        watch = asyncio.ensure_future(disconnected(receive))
        try:
            await asyncio.wait((work, watch), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Gone
            work.result()
        finally:
            for task in (work, watch):
                task.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)

    async def _tell(self, problem: Problem, scope: Scope, receive: Receive, answer: "Answer") -> None:
        with contextlib.suppress(Gone):
            await problem.as_response(self._settings.retry_after_s)(scope, receive, answer)


class Answer:
    """Sends on what the application answers.

    Attributes:
        status: what was sent, 0 before.
        at_end: called once, just before the last part goes out: who reads it may ask again at once.
    """

    def __init__(self, send: Send, timeout_s: float) -> None:
        self._send, self._timeout_s, self.status = send, timeout_s, 0
        self.at_end: Callable[[], None] | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif not message.get("more_body", False):
            self.end()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._send(message)
        except TimeoutError as error:
            raise Gone from error

    def end(self) -> None:
        at_end, self.at_end = self.at_end, None
        if at_end:
            at_end()


async def read_body(scope: Scope, receive: Receive, settings: Settings) -> bytes:
    """The whole body of a request.

    Raises:
        Problem: it is larger or slower than allowed.
        Gone: the caller went away before it had sent it.
    """
    said = header(scope, b"content-length")
    if said.isdigit() and int(said) > settings.max_body_bytes:
        raise too_large(settings)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.receive_timeout_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > settings.max_body_bytes:
                    raise too_large(settings)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError as error:
        found = f"the request did not arrive within {settings.receive_timeout_s:g} s"
        raise Problem(408, f"{found}. Send it faster.", code="timeout") from error


def too_large(settings: Settings) -> Problem:
    limit = f"{settings.max_body_bytes:,} bytes"
    return Problem(413, f"the request is larger than {limit}, the most that is taken.", code="request_too_large")


def replayed(body: bytes) -> Receive:
    """The body as an application receives it; after it nothing comes: the guard itself watches for the end."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    return receive


async def disconnected(receive: Receive) -> None:
    """Returns when the caller has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def check_key(scope: Scope, settings: Settings) -> None:
    """Raises Problem for a request without a key, where keys are asked for."""
    if not settings.keys or scope["path"] in OPEN_PATHS or scope["method"] == "OPTIONS":
        return
    key = bearer_of(scope["headers"])
    if not is_known(key, settings.keys):
        found = "an API key that is not known" if key else "no API key"
        words = f"{found} was sent; send one in the header `Authorization: Bearer KEY`."
        raise Problem(401, words, code="invalid_api_key")


def check_host(scope: Scope, settings: Settings) -> None:
    """Raises Problem for a page of another site that asks through the user's browser.

    A browser names the page's origin; a page that has bound its own name to this address names that as the host.
    """
    host = header(scope, b"host")
    if settings.hosts and host_name(host) not in settings.hosts:
        raise Problem(403, f"this gateway isn't reached by the name {host_name(host)!a}.", code="wrong_host")
    origin = header(scope, b"origin")
    if origin and origin not in settings.allowed_origins and urlsplit_host(origin) != host.lower():
        raise Problem(403, "a page of another origin may not ask.", code="wrong_origin")


def host_name(host: str) -> str:
    """The name in a Host header, without the port and the brackets of IPv6."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def urlsplit_host(origin: str) -> str:
    """host:port of an origin."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def header(scope: Scope, name: bytes) -> str:
    """The value of a header, "" if it isn't there."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")
