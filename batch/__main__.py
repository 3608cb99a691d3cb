"""Command `tritonkit batch`."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import shipped
from batch.calls import PIPELINES, entries
from batch.errors import BatchError

if TYPE_CHECKING:
    from batch.job import Job

app = typer.Typer()
LINE_S = 10.0  # between two lines of progress when nobody watches


@app.callback()
def group() -> None:
    """Keeps `batch` a command of its own when this is the only package."""


@app.command()
def batch(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A folder, or a .jsonl, .csv or .parquet file.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A .jsonl or .parquet file.")],
    pipeline: Annotated[str, typer.Option(help=f"{', '.join(PIPELINES)}, or the name of any served model.")],
    url: Annotated[str, typer.Option(help="A running server: grpc://host:port")] = "",
    repository: Annotated[
        Path | None, typer.Option(help="Start an embedded server over this model repository instead.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="No server: the models of --repository run in this process or worker.")
    ] = False,
    config_name: Annotated[
        str, typer.Option("--config-name", help="With --offline: load by configs/NAME.pbtxt, such as gpu.")
    ] = "",
    metrics_url: Annotated[
        str, typer.Option(help="The server's http://host:port/metrics, to show what waits in it.")
    ] = "",
    in_flight: Annotated[int, typer.Option(min=1, help="Requests at once.")] = 16,
    unordered: Annotated[bool, typer.Option("--unordered", help="Write rows in the order in which they end.")] = False,
    option: Annotated[
        list[str] | None, typer.Option(help="A field for every row: name=JSON or name=text. May be repeated.")
    ] = None,
    patience_s: Annotated[float, typer.Option("--patience", help="Seconds a server may be away.")] = 60.0,
    timeout_s: Annotated[float, typer.Option("--timeout", help="Longest wait for the next part of an answer.")] = 300.0,
    ray: Annotated[str, typer.Option(help="Ask from a Ray cluster: auto, host:port, or local for one here.")] = "",
    workers: Annotated[int, typer.Option(min=1, help="With --ray: how many workers ask; --in-flight is for each.")] = 1,
) -> None:
    """Run a pipeline over many recordings, pictures or prompts.

    Finished rows are kept in OUT.partial as they come: after an end of any kind, the same command goes on. Rows that
    can't be done go to OUT.bad.jsonl with the reason, and the exit status is 1.
    """
    from batch.job import Job, do_here, run_job

    if bool(url) == (repository is not None):
        fail("give either --url or --repository.", status=2)
    if offline and repository is None:
        fail("--offline goes with --repository.", status=2)
    job = Job(
        source=source,
        out=out,
        pipeline=pipeline,
        url=url,
        offline=str(repository.resolve()) if offline and repository else "",
        config_name=config_name,
        metrics_url=metrics_url,
        options=dict(named(one) for one in option or ()),
        in_flight=in_flight,
        keep_order=not unordered,
        patience_s=patience_s,
        timeout_s=timeout_s,
    )
    with said_problems(out), reporting() as report:
        if ray:
            from batch.on_ray import do_on_ray

            progress = run_job(job, do_on_ray(ray, workers, repository, report), report)
        else:
            with server_for(job, repository) as served:
                progress = run_job(served, do_here(report), report)
    print(f"{out}: {progress.summary()}", file=sys.stderr)
    if progress.bad:
        fail(f"{progress.bad:,} rows could not be done; their reasons are in {out}.bad.jsonl")


@contextlib.contextmanager
def said_problems(out: Path) -> Iterator[None]:
    """Turns what can go wrong into a line on stderr and an exit status."""
    from clients.errors import ClientError
    from embedded.errors import ServerError

    try:
        yield
    except KeyboardInterrupt:
        print(f"stopped. The same command goes on with the rows that are left ({out}.partial).", file=sys.stderr)
        raise typer.Exit(130) from None
    except (BatchError, ClientError, ServerError, OSError) as error:
        fail(str(error))


@contextlib.contextmanager
def server_for(job: "Job", repository: Path | None) -> Iterator["Job"]:
    """The job with the address of a server that runs."""
    if repository is None or job.offline:
        yield job
        return
    from batch.results import check_output
    from embedded import EmbeddedServer

    check_output(job.out)
    cache = shipped.cache()
    with EmbeddedServer(repository, load=entries(job.pipeline), cache=cache) as server:
        yield replace(job, url=f"grpc://{server.grpc}", metrics_url=server.metrics)


@contextlib.contextmanager
def reporting() -> Iterator[Callable[[str], None]]:
    """A function that shows a line: in place on a terminal, now and then elsewhere."""
    if not sys.stderr.isatty():
        yield every(LINE_S, lambda line: print(line, file=sys.stderr, flush=True))
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status("starting") as status:
        yield lambda line: status.update(line)


def every(seconds: float, show: Callable[[str], None]) -> Callable[[str], None]:
    """The function, but at most once in so many seconds."""
    last = [time.monotonic()]

    def call(line: str) -> None:
        if time.monotonic() - last[0] >= seconds:
            last[0] = time.monotonic()
            show(line)

    return call


def named(text: str) -> tuple[str, Any]:
    """name=value of an option."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        fail(f"--option {text}: name=value is needed.", status=2)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def fail(message: str, status: int = 1) -> NoReturn:
    """Say why on stderr and end."""
    print(message, file=sys.stderr)
    raise typer.Exit(status)


if __name__ == "__main__":
    app()
