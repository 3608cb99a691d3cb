"""What breaks around the gateway while requests run; the fate of every request is counted."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest
import uvicorn
from gateway_process import Gateway

from benchmarks.callers import Callers
from clients.gateway.guard import Guard
from clients.gateway.metrics import Metrics
from clients.gateway.settings import Settings

CHAT: dict[str, Any] = {"model": "llm", "messages": [{"role": "user", "content": "Question: What do you hear?"}]}


def chatting(api: str, number: int) -> Callers:
    """Callers that stream chats without pause, as `openai` clients that do not try again."""

    @contextmanager
    def connected(number: int) -> Iterator[Callable[[], str]]:
        with openai.OpenAI(base_url=api, api_key="none", max_retries=0, timeout=20) as client:
            yield lambda: fate(client)

    def fate(client: openai.OpenAI) -> str:
        reasons = []
        try:
            with client.chat.completions.create(**CHAT, stream=True) as stream:
                reasons = [chunk.choices[0].finish_reason for chunk in stream]
        except openai.APITimeoutError:
            return "lost"
        except openai.APIError:
            return "failed cleanly"
        return "answered" if reasons and reasons[-1] else "lost"

    return Callers(connected, number, pause_s=0.01)


@pytest.mark.server
@pytest.mark.timing
def test_a_killed_server_fails_requests_cleanly_and_health_says_so(mortal: Any) -> None:
    gateway = Gateway(mortal.grpc)
    try:
        with chatting(gateway.api, 4) as callers:
            callers.wait_for("answered", 8)
            mortal.kill()
            callers.wait_for("failed cleanly", 8)
            assert httpx.get(f"{gateway.url}/health", timeout=10).status_code == 503
        counts = callers.counts
        assert counts["lost"] == 0 and counts["sent"] == counts["answered"] + counts["failed cleanly"], counts
        assert gateway.metrics()["tritonkit_gateway_in_flight"] == 0
    finally:
        status, errors = gateway.stop()
    assert status == 0 and errors == ""


@pytest.mark.server
@pytest.mark.timing
def test_a_signal_lets_the_requests_in_flight_end(start_gateway: Any) -> None:
    with start_gateway() as gateway, openai.OpenAI(base_url=gateway.api, api_key="none", max_retries=0) as client:
        stream = client.chat.completions.create(
            **CHAT, stream=True, max_tokens=300, extra_body={"ignore_eos": True, "min_tokens": 300}
        )
        chunks = iter(stream)
        next(chunks)
        os.kill(gateway.process.pid, signal.SIGTERM)
        assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "length"
        gateway.process.wait(30)
        status, errors = gateway.stop()
        assert status == 0 and errors == ""


@pytest.mark.server
@pytest.mark.timing
def test_a_second_signal_ends_it_at_once(start_gateway: Any) -> None:
    with start_gateway() as gateway, openai.OpenAI(base_url=gateway.api, api_key="none", max_retries=0) as client:
        options = {"ignore_eos": True, "min_tokens": 1900}
        chunks = iter(client.chat.completions.create(**CHAT, stream=True, max_tokens=1900, n=4, extra_body=options))
        next(chunks)
        os.kill(gateway.process.pid, signal.SIGTERM)
        for _ in range(20):  # it goes on answering
            next(chunks)
        os.kill(gateway.process.pid, signal.SIGTERM)
        with pytest.raises((openai.APIError, httpx.HTTPError)):
            list(chunks)
        gateway.process.wait(5)
        assert gateway.stop() == (0, "")


@pytest.mark.server
@pytest.mark.timing
def test_a_client_that_is_killed_stops_the_engine(gateway: Any, engine: Any) -> None:
    body = (
        '{"model": "llm", "prompt": "Hello", "n": 4, "max_tokens": 1900, "min_tokens": 1900, "ignore_eos": true,'
        ' "stream": true}'
    )
    client = subprocess.Popen(
        ["curl", "--silent", "--no-buffer", f"{gateway.api}/completions", "--json", body], stdout=subprocess.PIPE
    )
    assert client.stdout and client.stdout.readline()
    engine.wait_until_busy()
    client.kill()
    client.wait()
    client.stdout.close()
    engine.wait_until_idle(5)


@pytest.fixture
def endless() -> Iterator[Any]:
    """A guarded application that sends without end, in a real uvicorn; .sent counts bytes, .ended tells its end."""

    class Endless:
        sent, ended = 0, threading.Event()

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            try:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                while True:
                    await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                    self.sent += 65536
            finally:
                self.ended.set()

    app = Endless()
    guard = Guard(app, Settings(send_timeout_s=0.5), Metrics())
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(guard, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    yield app, listener.getsockname()[1]
    server.should_exit = server.force_exit = True
    thread.join(20)
    listener.close()


def test_a_caller_that_stops_reading_is_cut_off_and_little_is_kept_for_it(endless: Any) -> None:
    app, port = endless
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        caller.connect(("127.0.0.1", port))
        caller.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert app.ended.wait(10), "it goes on sending to nobody"
    assert app.sent < 16 * 2**20
