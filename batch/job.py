"""A whole batch: input, journal, server, output, joined."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batch.calls import Caller, entries
from batch.journal import Journal
from batch.progress import Progress
from batch.results import check_output, journal_path, write_output
from batch.rows import Row
from batch.running import Asking, run_rows
from batch.sources import Source, open_source

if TYPE_CHECKING:
    from clients.aio import AsyncClient

REPORT_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a batch is asked to do.

    Attributes:
        url: the server, grpc://host:port.
        offline: a model repository whose models run in the workers themselves, instead of a server.
        config_name: by which configs/NAME.pbtxt they load there.
        metrics_url: its metrics, to show how many requests wait in it; empty if not known.
        options: fields for every row that does not have them itself.
        in_flight: requests at once.
        keep_order: whether the output has the order of the input.
        patience_s: how long a server may be away.
        timeout_s: the longest wait for an answer, or for the next part of a streamed one.
    """

    source: Path
    out: Path
    pipeline: str
    url: str = ""
    offline: str = ""
    config_name: str = ""
    metrics_url: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    in_flight: int = 16
    keep_order: bool = True
    patience_s: float = 60.0
    timeout_s: float = 300.0


# Does the rows, each with its end in the journal: a server's client here, Ray elsewhere.
Doing = Callable[[Job, Source, Iterator[Row], Journal, Progress], None]


def run_job(job: Job, do: Doing, report: Callable[[str], None] = lambda line: None) -> Progress:
    """Does what is left of a job and writes its output; the counts.

    Raises:
        BatchError: the input, the output or the server; the next run goes on where this one stopped.
    """
    check_output(job.out)
    source = open_source(job.source, job.pipeline)
    about = {"pipeline": job.pipeline, "input": source.mark, "options": dict(job.options)}
    with Journal(journal_path(job.out), about) as journal:
        seen: list[str] = []
        progress = Progress(source.count, len(journal.done), journal.bad, job.in_flight)
        do(job, source, left_rows(source, journal, seen), journal, progress)
        report(progress.line())
        keys = seen if job.keep_order else list(journal.done)
        write_output(job.out, journal, keys, job.pipeline)
    return progress


def left_rows(source: Source, journal: Journal, seen: list[str]) -> Iterator[Row]:
    """The rows that are not done; `seen` gets the keys of all, in order."""
    done_before = set(journal.done)
    for row in source.rows():
        seen.append(row.key)
        if row.key not in done_before:
            yield row


def do_here(report: Callable[[str], None]) -> Doing:
    """Plain mode: this process asks the server at job.url."""

    def do(job: Job, source: Source, rows: Iterator[Row], journal: Journal, progress: Progress) -> None:
        asyncio.run(ask_server(job, source, rows, journal, progress, report))

    return do


async def ask_server(
    job: Job,
    source: Source,
    rows: Iterator[Row],
    journal: Journal,
    progress: Progress,
    report: Callable[[str], None],
) -> None:
    """Does the rows on one server."""
    async with open_client(job) as client:
        await client.wait_for_ready(*entries(job.pipeline), limit_s=job.patience_s)
        caller = Caller(client, job.pipeline, base=source.base, **job.options)
        asking = Asking(client, caller, patience_s=job.patience_s)
        reporting = asyncio.create_task(keep_reporting(progress, report))
        try:
            await run_rows(rows, asking, journal, progress, job.metrics_url)
        finally:
            reporting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reporting


def open_client(job: Job) -> "AsyncClient":
    """A client of the job's server, or of its models in this process."""
    if job.offline:
        from batch.offline import offline_client

        names = entries(job.pipeline)
        return offline_client(Path(job.offline), names, config_name=job.config_name, timeout_s=job.timeout_s)
    from clients import connect_async

    return connect_async(job.url, timeout_s=job.timeout_s)


async def keep_reporting(progress: Progress, report: Callable[[str], None]) -> None:
    """Reports the state again and again."""
    while True:
        await asyncio.sleep(REPORT_S)
        report(progress.line())
