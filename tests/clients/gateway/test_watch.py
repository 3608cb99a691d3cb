"""A silent answer whose model has gone; the server's side is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from clients.endpoint import Endpoint
from clients.errors import StreamBroken, Unreachable
from clients.gateway import watch
from clients.tensors import Response

FIRST, SECOND = Response(is_final=False), Response(is_final=True)


class Server:
    """Answers questions for readiness with what is in `says`, the last one for ever."""

    endpoint = Endpoint(scheme="grpc", host="127.0.0.1", port=1)

    def __init__(self, *says: bool | Exception) -> None:
        self.says, self.asked, self.closed = list(says), 0, False

    async def is_ready(self, model: str, timeout_s: float) -> bool:
        self.asked += 1
        answer = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, silent_s: float) -> AsyncGenerator[Response, None]:
        try:
            yield FIRST
            await asyncio.sleep(silent_s)
            yield SECOND
        finally:
            self.closed = True


async def collected(server: Any, silent_s: float) -> list[Response]:
    return [response async for response in watch.watched(server.stream(silent_s), server, "llm")]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SILENT_S", 0.02)
    monkeypatch.setattr(watch, "LEFT_S", 0.5)


def test_a_stream_of_a_model_that_was_unloaded_ends_soon() -> None:
    server = Server(True, True, False, True)  # it is loaded anew: that does not bring the answer back
    with pytest.raises(StreamBroken, match="the model was unloaded while it answered"):
        asyncio.run(asyncio.wait_for(collected(server, 60), 5))
    assert server.asked == 3 and server.closed


def test_an_answer_that_comes_all_the_same_is_passed_on() -> None:
    server = Server(False)
    assert asyncio.run(collected(server, 0.1)) == [FIRST, SECOND]
    assert server.asked == 1


def test_a_single_answer_is_watched_too() -> None:
    ended: list[bool] = []

    async def answer(after_s: float) -> Response:
        try:
            await asyncio.sleep(after_s)
            return SECOND
        finally:
            ended.append(True)

    async def ask(server: Any, after_s: float) -> Response:
        return await asyncio.wait_for(watch.awaited(answer(after_s), server, "transcribe"), 5)

    assert asyncio.run(ask(Server(True), 0.1)) is SECOND
    with pytest.raises(StreamBroken, match="transcribe.*unloaded while it answered"):
        asyncio.run(ask(Server(False), 60))
    assert ended == [True, True]


def test_a_slow_stream_of_a_model_that_is_there_is_waited_for() -> None:
    server = Server(True)
    assert asyncio.run(collected(server, 0.2)) == [FIRST, SECOND]
    assert server.asked > 2 and server.closed


def test_a_server_that_does_not_answer_is_left_to_break_the_stream() -> None:
    assert asyncio.run(collected(Server(Unreachable("a", "b")), 0.1)) == [FIRST, SECOND]


def test_a_lively_stream_asks_nothing() -> None:
    server = Server(False)
    assert asyncio.run(collected(server, 0)) == [FIRST, SECOND]
    assert server.asked == 0


def test_closing_it_closes_the_stream() -> None:
    server = Server(True)

    async def leave() -> None:
        responses = watch.watched(server.stream(60), server, "llm")  # type: ignore[arg-type]
        assert await anext(responses) is FIRST
        waiting = asyncio.ensure_future(anext(responses))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await responses.aclose()

    asyncio.run(leave())
    assert server.closed
