"""Whoever leaves an answer of a pipeline stops the engine inside it, in whatever way they leave (VLL-05).

Without lifelines each of these fails: Triton 2.51 does not tell a running step that its ensemble was cancelled.
"""

import asyncio
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack, aclosing, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc

from clients import Delta, connect, connect_async

pytestmark = pytest.mark.server

TOKENS = 1900
LONG: dict[str, Any] = {"max_tokens": TOKENS, "min_tokens": TOKENS, "ignore_eos": True}
AT_ONCE = 4
PADDING = 2**19
STOPPED_S = 2.5  # half a second of it is looking; so many answers take far longer, on any machine that this runs on


@pytest.fixture(scope="module")
def assert_stops(engine: Any) -> Callable[[Callable[[], object]], None]:
    """Fails unless the engine works before `leave` is called and soon after does not."""

    def check(leave: Callable[[], object]) -> None:
        engine.wait_until_busy()
        began = time.monotonic()
        leave()
        engine.wait_until_idle(STOPPED_S - (time.monotonic() - began))

    return check


@pytest.mark.timing
@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_closing_an_answer_of_a_pipeline_stops_the_engine(served: Any, scheme: str, assert_stops: Any) -> None:
    with connect(f"{scheme}://{getattr(served, scheme)}") as client, ExitStack() as answers:
        for _ in range(AT_ONCE):
            events = answers.enter_context(closing(client.ask(question="Hello", **LONG)))
            assert isinstance(next(events), Delta)
        assert_stops(answers.close)


@pytest.mark.timing
def test_cancelling_a_task_stops_the_engine(served: Any, assert_stops: Any) -> None:
    async def read(client: Any) -> None:
        async with aclosing(client.ask(question="Hello", **LONG)) as events:
            async for _ in events:
                pass

    async def everything() -> None:
        async with connect_async(f"grpc://{served.grpc}") as client:
            tasks = [asyncio.create_task(read(client)) for _ in range(AT_ONCE)]
            loop = asyncio.get_running_loop()

            def cancel() -> None:
                for task in tasks:
                    loop.call_soon_threadsafe(task.cancel)

            await asyncio.to_thread(assert_stops, cancel)
            assert all(isinstance(one, asyncio.CancelledError) for one in await gathered(tasks))

    async def gathered(tasks: list[Any]) -> list[Any]:
        return await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(everything())


@pytest.mark.timing
@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_killed_client_stops_the_engine(served: Any, scheme: str, assert_stops: Any, checkout: Path) -> None:
    program = f"""
from clients import connect
client = connect("{scheme}://{getattr(served, scheme)}")
answers = [client.ask(question="Hello", **{LONG!r}) for _ in range({AT_ONCE})]
print([next(events) for events in answers], flush=True)
input()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], cwd=checkout, **pipes) as killed:  # type: ignore[call-overload]
        assert b"Delta" in killed.stdout.readline()
        assert_stops(killed.kill)


@pytest.mark.timing
def test_plain_tritonclient_can_hold_a_lifeline_too(served: Any, assert_stops: Any) -> None:
    """As docs/clients.md shows it."""

    def text(name: str, value: str) -> Any:
        tensor = tritonclient.grpc.InferInput(name, [1], "BYTES")
        tensor.set_data_from_numpy(np.array([value.encode()], dtype=object))
        return tensor

    sampling = '{"max_tokens": 1900, "min_tokens": 1900, "ignore_eos": true}'
    with tritonclient.grpc.InferenceServerClient(served.grpc) as client, ExitStack() as stream:
        client.start_stream(lambda result, error: None)
        stream.callback(client.stop_stream, cancel_requests=True)
        for _ in range(AT_ONCE):
            name = uuid.uuid4().hex  # one that has ended stays ended: a request with its name would end at once
            client.async_stream_infer("llm", [text("LIFELINE", name)])
            inputs = [text("QUESTION", "Hello"), text("SAMPLING_PARAMETERS", sampling)]
            client.async_stream_infer("assistant_text", inputs, request_id=name)
        assert_stops(stream.close)


def test_answers_that_nobody_leaves_are_whole(served: Any) -> None:
    with connect(f"grpc://{served.grpc}") as client:
        left = client.ask(question="Hello", **LONG)
        options = {**LONG, "max_tokens": 200, "min_tokens": 200}
        whole = client.ask(question="Hello", **options)
        next(left), next(whole)
        left.close()
        *_, finished = whole
        assert (finished.reason, finished.completion_tokens) == ("length", 200)


def test_an_answer_that_was_read_leaves_nothing_in_the_server(served: Any, checkout: Path) -> None:
    with connect(f"grpc://{served.grpc}") as client:
        assert_keeps_nothing(served, lambda: list(client.ask(image=padded(checkout), question="Hello", max_tokens=1)))


def test_an_answer_that_was_read_by_asyncio_leaves_nothing_in_the_server(served: Any, checkout: Path) -> None:
    async def read(client: Any) -> None:
        async for _ in client.ask(image=padded(checkout), question="Hello", max_tokens=1):
            pass

    async def connected() -> Any:
        return connect_async(f"grpc://{served.grpc}")

    with asyncio.Runner() as runner:
        client = runner.run(connected())
        assert_keeps_nothing(served, lambda: runner.run(read(client)))
        runner.run(client.close())


def padded(checkout: Path) -> bytes:
    """A picture, and behind its end, where no decoder looks, much else."""
    return (checkout / "samples" / "coffee.jpg").read_bytes() + bytes(PADDING)


def assert_keeps_nothing(served: Any, ask: Callable[[], object]) -> None:
    """Triton 2.51 keeps the whole request of a stream that is cancelled while it ends: memory would grow every time."""

    def grown(times: int = 15) -> int:
        before = private_memory(served.server_pid())
        for _ in range(times):
            ask()
        return private_memory(served.server_pid()) - before

    assert min(grown() for _ in range(4)) < 15 * PADDING / 5


def private_memory(pid: int) -> int:
    """Bytes of a process's own, shared memory not counted."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024
