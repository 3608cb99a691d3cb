"""The commands themselves, as processes: worker and results, until SIGTERM."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from websockets.asyncio.client import connect

from tritonkit.__main__ import joined


async def command(*words: object) -> asyncio.subprocess.Process:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    line = [sys.executable, "-m", "tritonkit", *map(str, words)]
    return await asyncio.create_subprocess_exec(*line, env=environment, stdout=asyncio.subprocess.PIPE)


async def said(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


@pytest.mark.server
def test_worker_and_results_serve_until_they_are_told_to_end(topics: Any, llm_url: str, within: Callable) -> None:
    async def live() -> dict[str, Any]:
        await topics.create("cli.in", "cli.out", "cli.in.dead")
        about = ("--brokers", topics.brokers)
        names = ("--inbound", "cli.in", "--outbound", "cli.out", "--group", "cli", "--session-timeout", 3)
        how = ("--url", llm_url, "--metrics-port", 0, "--option", "words=2")
        worker = await command("worker", "--pipeline", "llm", *names, *how, *about)
        results = await command("results", "--topic", "cli.out", "--port", 0, *about)
        try:
            assert (await said(worker)).startswith("metrics: http://127.0.0.1:")
            assert await said(worker) == "ready: cli.in -> llm -> cli.out"
            async with connect((await said(results)).split()[1]) as socket:
                await topics.send("cli.in", [(b"k", b'{"prompt": "x"}', [])])
                frame = json.loads(await socket.recv())
            for process in (worker, results):
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 0
        finally:
            for process in (worker, results):
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        return frame

    frame = within(live(), 60)
    assert (frame["key"], frame["result"]["text"]) == ("k", "word0 word1 "), (
        "the option counts where the message has none"
    )


def test_worker_that_still_waits_for_its_server_ends_at_once(within: Callable) -> None:
    async def live() -> int:
        names = ("--pipeline", "llm", "--inbound", "a", "--outbound", "b", "--patience", 600)
        worker = await command("worker", *names, "--url", "grpc://127.0.0.1:9", "--metrics-port", 0)
        try:
            await said(worker)
            await asyncio.sleep(2)  # without a server it would wait ten minutes
            worker.send_signal(signal.SIGTERM)
            return await worker.wait()
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()

    assert within(live(), 30) == 0


@pytest.mark.server
def test_worker_says_what_is_missing_and_ends_with_status_1(llm_url: str) -> None:
    words = ["worker", "--pipeline", "llm", "--inbound", "a", "--outbound", "b", "--brokers", "127.0.0.1:9"]
    done = CliRunner().invoke(joined()[0], [*words, "--url", llm_url, "--metrics-port", "0"])
    assert done.exit_code == 1 and "Is the broker there?" in done.stderr
