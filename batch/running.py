"""Rows go out to one server, as many at once as allowed, and each one's end is kept the moment it comes."""

import asyncio
import contextlib
import re
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING

from batch.calls import Caller, entries
from batch.errors import RowError, ServerLost
from batch.journal import Journal
from batch.progress import Progress
from batch.rows import Row

if TYPE_CHECKING:
    from clients.aio import AsyncClient

TRIES = 3
METRICS_S = 1.0
# In the server's own queues, and in the engine of a language model, which takes every request out of them at once.
PENDING = re.compile(
    rb"^(?:nv_inference_pending_request_count|tritonkit_llm_waiting_requests)\{[^}]*\} (\S+)$", re.MULTILINE
)


class Asking:
    """Gets rows done by a server that may go away for a while.

    A row that was in flight when the server was lost may be the reason. It is tried again alone among its like, so
    that one row that kills the server costs its own place and not that of its neighbours.
    """

    def __init__(self, client: "AsyncClient", caller: Caller, *, patience_s: float) -> None:
        self._client = client
        self._caller = caller
        self._patience_s = patience_s
        self._alone = asyncio.Lock()

    async def answer(self, row: Row) -> dict:
        """The answer to a row.

        Raises:
            RowError: it can't be done.
            ServerLost: the server did not come back in time.
        """
        from clients.errors import ClientError, NotReady, RequestTimeout, StreamBroken, Unreachable

        if row.problem:
            raise RowError(row.problem)
        reason = ""
        for attempt in range(TRIES):
            try:
                async with self._alone if attempt else contextlib.nullcontext():
                    return await self._caller(row.fields)
            except (Unreachable, NotReady, StreamBroken) as error:
                await self._wait_for_server()
                reason = f"the server was lost {attempt + 1} times while it did this row: {error}"
            except RequestTimeout as error:
                reason = f"tried {attempt + 1} times: {error}"
            except ClientError as error:
                raise RowError(str(error)) from error
        raise RowError(reason)

    async def _wait_for_server(self) -> None:
        from clients.errors import ClientError

        try:
            await self._client.wait_for_ready(*entries(self._caller.pipeline), limit_s=self._patience_s)
        except ClientError as error:
            raise ServerLost(f"the server did not come back within {self._patience_s:g} s: {error}") from error


async def run_rows(
    rows: Iterator[Row], asking: Asking, journal: Journal, progress: Progress, metrics_url: str = ""
) -> None:
    """Returns when every row has an end in the journal.

    Raises:
        ServerLost: the journal holds what was done until then.
    """

    async def lane() -> None:
        for row in rows:
            progress.begin()
            try:
                result = await asking.answer(row)
            except RowError as error:
                journal.add_bad(row, str(error))
                progress.end(is_bad=True)
            else:
                journal.add(row, result)
                progress.end()

    watching = asyncio.create_task(watch_queue(progress, metrics_url)) if metrics_url else None
    try:
        async with asyncio.TaskGroup() as lanes:
            for _ in range(progress.limit):
                lanes.create_task(lane())
    except* ServerLost as lost:
        raise lost.exceptions[0] from None
    finally:
        if watching:
            watching.cancel()


async def watch_queue(progress: Progress, metrics_url: str) -> None:
    """Keeps in the progress how many requests wait inside the server, all models together."""
    while True:
        with contextlib.suppress(OSError, ValueError):
            progress.server_queue = await asyncio.to_thread(pending, metrics_url)
        await asyncio.sleep(METRICS_S)


def pending(metrics_url: str) -> int:
    """Requests that wait in the server."""
    with urllib.request.urlopen(metrics_url, timeout=2) as answer:
        return waiting(answer.read())


def waiting(metrics: bytes) -> int:
    """The same, in what its metrics say."""
    return int(sum(float(number) for number in PENDING.findall(metrics)))
