"""The server dies or freezes while a client listens: an error within a bounded time, never silence."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from clients import ClientError, RequestTimeout, StreamBroken, Unreachable, connect, connect_async

pytestmark = pytest.mark.server
LONG = {"words": 1000, "pause_s": 0.05}


def seconds_until(error: type[ClientError], call: Callable[[], object]) -> float:
    begin = time.monotonic()
    with pytest.raises(error):
        call()
    return time.monotonic() - begin


@pytest.mark.timing
def test_a_killed_server_breaks_every_stream_at_once_and_is_unreachable_then(mortal: Any) -> None:
    """CLI-09."""

    async def read_until_it_breaks(client: Any) -> None:
        async for _ in client.chat("Hi", **LONG):
            if not is_killed:
                kill()

    is_killed: list[bool] = []

    def kill() -> None:
        mortal.kill()
        is_killed.append(True)

    async def asyncio_client() -> float:
        async with connect_async(mortal.grpc, timeout_s=60) as client:
            with pytest.raises(StreamBroken, match="the answer had not ended"):
                await read_until_it_breaks(client)
            begin = time.monotonic()
            with pytest.raises(Unreachable):
                await client.infer("llm", {})
            return time.monotonic() - begin

    with (
        connect(mortal.grpc, timeout_s=60, shared_memory=True) as grpc,
        connect(mortal.http, timeout_s=60) as http,
    ):
        streams = [client.chat("Hi", **LONG) for client in (grpc, http)]
        streams.append(grpc.ask(np.zeros(480_000, np.float32), question="What?", **LONG))
        for stream in streams:
            next(stream)
        assert asyncio.run(asyncio_client()) < 5
        for stream in streams:
            assert seconds_until(StreamBroken, lambda: list(stream)) < 5  # noqa: B023
        for client in (grpc, http):
            assert seconds_until(Unreachable, lambda: next(client.chat("Hi"))) < 5  # noqa: B023


@pytest.mark.timing
def test_a_frozen_server_is_a_timeout(mortal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """CLI-09."""
    monkeypatch.setattr("clients.sharing.CALL_TIMEOUT_S", 1.0)
    with connect(mortal.grpc, timeout_s=1, shared_memory=True) as grpc, connect(mortal.http, timeout_s=1) as http:
        shared = grpc.ask(np.zeros(480_000, np.float32), question="What?", **LONG)
        streams = [client.chat("Hi", **LONG) for client in (grpc, http)]
        for stream in (shared, *streams):
            next(stream)
        mortal.freeze()
        assert seconds_until(RequestTimeout, lambda: list(shared)) < 8
        for stream in streams:
            assert seconds_until(RequestTimeout, lambda: list(stream)) < 3  # noqa: B023
        for client in (grpc, http):
            assert seconds_until(ClientError, lambda: next(client.chat("Hi"))) < 5  # noqa: B023
        mortal.kill()
