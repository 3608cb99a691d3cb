"""The guard around a small application of the test's own: no server is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from clients.gateway.guard import Guard
from clients.gateway.keys import hash_key, is_known, read_keys
from clients.gateway.metrics import Metrics
from clients.gateway.settings import Settings

KEY = "a key of the test's own"
ASKED = "/v1/completions"


class Caller:
    """One caller. sent: what it got. gone: set when it goes away."""

    def __init__(self, body: bytes = b"", *, path: str = ASKED, headers: dict[str, str] | None = None) -> None:
        named = {"host": "localhost:9000", **(headers or {})}
        pairs = [(name.encode(), value.encode()) for name, value in named.items()]
        self.scope = {"type": "http", "method": "POST", "path": path, "headers": pairs}
        self.sent: list[Any] = []
        self.gone = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self._parts = [body[at : at + 1000] for at in range(0, max(1, len(body)), 1000)]

    async def receive(self) -> dict[str, Any]:
        if self._parts:
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.sent.append(message)

    async def ask(self, guard: Guard) -> None:
        await guard(self.scope, self.receive, self.send)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.sent[1]["body"])["error"]
        return found

    def header(self, name: bytes) -> bytes:
        return dict(self.sent[0]["headers"])[name]


class Work:
    """An application that answers when it is let; records what it was given and whether it was cancelled."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.cancelled = 0
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        try:
            self.bodies.append((await receive())["body"])
            await self.may_go_on.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"answer"})
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def test_a_request_goes_through_whole() -> None:
    async def scenario() -> None:
        work = Work()
        caller = Caller(b"x" * 2500)
        await caller.ask(Guard(work, Settings(), Metrics()))
        assert work.bodies == [b"x" * 2500]
        assert caller.status == 200 and caller.sent[1]["body"] == b"answer"

    asyncio.run(scenario())


def test_work_is_cancelled_when_its_caller_goes_away() -> None:
    async def scenario() -> None:
        work, metrics = Work(), Metrics()
        work.may_go_on.clear()
        caller = Caller()
        asked = asyncio.create_task(caller.ask(Guard(work, Settings(), metrics)))
        while not work.bodies:
            await asyncio.sleep(0)
        caller.gone.set()
        await asked
        assert work.cancelled == 1 and caller.sent == []
        assert b'route="/v1/completions",status="499"} 1.0' in metrics.text()

    asyncio.run(scenario())


def test_a_caller_that_does_not_read_is_cut_off() -> None:
    async def scenario() -> None:
        caller = Caller()
        caller.reads.clear()
        guard = Guard(Work(), Settings(send_timeout_s=0.05), Metrics())
        async with asyncio.timeout(5):
            await caller.ask(guard)
        assert caller.sent == []

    asyncio.run(scenario())


def test_more_requests_than_allowed_are_refused_at_once_and_the_next_ones_answered() -> None:
    async def scenario() -> None:
        work = Work()
        work.may_go_on.clear()
        guard = Guard(work, Settings(most_in_flight=2, retry_after_s=3), Metrics())
        callers = [Caller() for _ in range(5)]
        asked = [asyncio.create_task(caller.ask(guard)) for caller in callers]
        async with asyncio.timeout(5):
            await asyncio.gather(*asked[2:])
        assert [caller.status for caller in callers[2:]] == [429] * 3
        assert callers[2].header(b"retry-after") == b"3"
        assert callers[2].error["type"] == "rate_limit_error"
        work.may_go_on.set()
        await asyncio.gather(*asked[:2])
        assert [caller.status for caller in callers[:2]] == [200, 200]
        late = Caller()
        await late.ask(guard)
        assert late.status == 200

    asyncio.run(scenario())


def test_health_is_answered_even_then() -> None:
    async def scenario() -> None:
        work = Work()
        work.may_go_on.clear()
        guard = Guard(work, Settings(most_in_flight=1), Metrics())
        first, health = Caller(), Caller(path="/health")
        both = asyncio.gather(first.ask(guard), health.ask(guard))
        await asyncio.sleep(0.01)
        work.may_go_on.set()
        await both
        assert health.status == 200

    asyncio.run(scenario())


@pytest.mark.parametrize("said", [True, False])
def test_a_body_that_is_too_large_is_refused(said: bool) -> None:
    async def scenario() -> None:
        work = Work()
        caller = Caller(b"x" * 5000, headers={"content-length": "5000"} if said else {})
        await caller.ask(Guard(work, Settings(max_body_bytes=4000), Metrics()))
        assert caller.status == 413 and caller.error["code"] == "request_too_large"
        assert work.bodies == []

    asyncio.run(scenario())


def test_a_body_that_never_comes_is_not_waited_for() -> None:
    async def scenario() -> None:
        caller = Caller()
        caller._parts = []
        async with asyncio.timeout(5):
            await caller.ask(Guard(Work(), Settings(receive_timeout_s=0.05), Metrics()))
        assert caller.status == 408

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer another key of no worth"}, 401),
        ({"authorization": f"Basic {KEY}"}, 401),
        ({"authorization": f"Bearer {KEY}"}, 200),
        ({"authorization": f"bearer  {KEY} "}, 200),
    ],
)
def test_a_key_is_asked_for(sent: dict[str, str], status: int) -> None:
    async def scenario() -> None:
        caller = Caller(headers=sent)
        await caller.ask(Guard(Work(), Settings(keys=(hash_key("first"), hash_key(KEY))), Metrics()))
        assert caller.status == status
        if status == 401:
            assert caller.error["code"] == "invalid_api_key" and KEY not in caller.error["message"]

    asyncio.run(scenario())


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/health", 200), ("/metrics", 401), ("/v1/models", 401)])
def test_only_what_tells_nothing_is_open_without_a_key(path: str, status: int) -> None:
    async def scenario() -> None:
        caller = Caller(path=path)
        await caller.ask(Guard(Work(), Settings(keys=(hash_key(KEY),)), Metrics()))
        assert caller.status == status

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://localhost:9000"}, 200),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://app.example"}, 200),
        ({"host": "evil.example:9000"}, 403),
        ({"host": "[::1]:9000"}, 200),
        ({"host": ""}, 403),
        ({"host": "localhost:x]"}, 403),
    ],
)
def test_pages_of_other_sites_may_not_ask(headers: dict[str, str], status: int) -> None:
    async def scenario() -> None:
        caller = Caller(headers=headers)
        await caller.ask(Guard(Work(), Settings(allowed_origins=("https://app.example",)), Metrics()))
        assert caller.status == status

    asyncio.run(scenario())


def test_a_path_that_does_not_exist_makes_no_time_series() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        await Caller(path="/etc/passwd").ask(Guard(Work(), Settings(), metrics))
        assert b"passwd" not in metrics.text() and b'route="other"' in metrics.text()

    asyncio.run(scenario())


def test_settings_do_not_show_their_keys() -> None:
    assert hash_key(KEY).hex() not in repr(Settings(keys=(hash_key(KEY),)))
    assert str(hash_key(KEY)) not in repr(Settings(keys=(hash_key(KEY),)))


def test_keys_are_read_one_a_line() -> None:
    assert read_keys("# who\n0123456789abcdef\n\n  fedcba9876543210  \n") == ("0123456789abcdef", "fedcba9876543210")
    assert is_known("0123456789abcdef", [hash_key("0123456789abcdef")])
    assert not is_known("", [hash_key("0123456789abcdef")])


@pytest.mark.parametrize("text", ["", "# none\n", "0123456789abcdef\nshort\n"])
def test_a_file_without_a_safe_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_keys(text)
    assert "short" not in str(caught.value)
