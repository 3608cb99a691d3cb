"""Ray Data mode: rows go to workers across a cluster, each with a server of its own or all with one.

Only the asking is spread. Results come back to the process that started the batch, which alone writes the journal: to
be killed and to go on is the same as in plain mode. Paths in rows must mean the same file on every machine.
"""

import asyncio
import logging
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import shipped
from batch.calls import Caller, entries
from batch.cluster import ray_cluster
from batch.errors import RowError, ServerLost
from batch.job import Doing, Job, open_client
from batch.journal import Journal
from batch.progress import Progress
from batch.rows import Row
from batch.running import Asking
from batch.sources import Source

PORTION_ROWS = 50_000  # rows that Ray gets at once; they wait in its object store
BATCHES_AT_ONCE = 2  # per worker, so that the next rows are there before the last of a batch are answered


def do_on_ray(address: str, workers: int, repository: Path | None, report: Callable[[str], None]) -> Doing:
    """Asks from `workers` Ray actors; with a repository each starts an embedded server of its own over it."""

    def do(job: Job, source: Source, rows: Iterator[Row], journal: Journal, progress: Progress) -> None:
        progress.limit = workers * job.in_flight
        where = None if repository is None or job.offline else str(repository.resolve())
        with ray_cluster(address):
            while portion := list(islice(rows, PORTION_ROWS)):
                for row, result, reason in outcomes(portion, job, source, workers, where):
                    if reason:
                        journal.add_bad(row, reason)
                    else:
                        journal.add(row, result)
                    progress.finish(is_bad=bool(reason))
                    report(progress.line())

    return do


def outcomes(
    rows: list[Row], job: Job, source: Source, workers: int, repository: str | None
) -> Iterator[tuple[Row, dict[str, Any], str]]:
    """Each row with its answer or its reason, in the order in which they end.

    Raises:
        ServerLost: a worker's server is gone.
    """
    import ray
    from ray.data import ActorPoolStrategy

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    size = 2 * job.in_flight
    blocks = max(1, min(len(rows), len(rows) // size + 1))
    data = ray.data.from_items([{"row": pickle.dumps(row)} for row in rows], override_num_blocks=blocks)
    asked = data.map_batches(
        Worker,
        fn_constructor_args=(replace(job, options=dict(job.options)), str(source.base.resolve()), repository),
        compute=ActorPoolStrategy(
            size=workers, max_concurrent_calls_per_actor=BATCHES_AT_ONCE, enable_true_multi_threading=True
        ),
        batch_size=None,
        num_cpus=0.1,
    )
    try:
        for item in asked.iter_rows():
            yield pickle.loads(item["outcome"])
    except (ray.exceptions.RayError, ray.exceptions.UserCodeException) as error:
        raise ServerLost(f"a Ray worker ended: {reason_of(error)}") from error


def reason_of(error: BaseException) -> str:
    """The last line of a remote traceback, which is what went wrong."""
    cause = getattr(error, "cause", None) or error.__cause__ or error
    return (str(cause).strip().splitlines() or [type(error).__name__])[-1]


class Worker:
    """One Ray actor: an event loop in a thread, a client, perhaps a server; `in_flight` rows at once in all."""

    def __init__(self, job: Job, base: str, repository: str | None) -> None:
        self._job = job
        self._server: Any = None
        if repository is not None:
            from embedded import EmbeddedServer

            cache = shipped.cache()
            self._server = EmbeddedServer(Path(repository), load=entries(job.pipeline), cache=cache)
            self._server.__enter__()
            self._job = replace(job, url=f"grpc://{self._server.grpc}")
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._connect(Path(base)), self._loop).result()

    async def _connect(self, base: Path) -> None:
        client = open_client(self._job)
        await client.wait_for_ready(*entries(self._job.pipeline), limit_s=self._job.patience_s)
        caller = Caller(client, self._job.pipeline, base=base, **self._job.options)
        self._asking = Asking(client, caller, patience_s=self._job.patience_s)
        self._free = asyncio.Semaphore(self._job.in_flight)

    def __call__(self, batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The outcome of each row, as it ends."""
        rows = [pickle.loads(row) for row in batch["row"]]
        tasks = [asyncio.run_coroutine_threadsafe(self._outcome(row), self._loop) for row in rows]
        for task in tasks:
            yield {"outcome": [pickle.dumps(task.result())]}

    async def _outcome(self, row: Row) -> tuple[Row, dict[str, Any], str]:
        async with self._free:
            try:
                return row, await self._asking.answer(row), ""
            except RowError as error:
                return row, {}, str(error)

    def __del__(self) -> None:
        if getattr(self, "_server", None) is not None:
            self._server.stop()
