"""Commands `tritonkit worker` and `tritonkit results`."""

import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from batch.calls import PIPELINES

app = typer.Typer()
Brokers = Annotated[str, typer.Option(envvar="TRITONKIT_BROKERS", help="host:port of Kafka; more after commas.")]


@app.command()
def worker(
    pipeline: Annotated[str, typer.Option(help=f"{', '.join(PIPELINES)}, or the name of any served model.")],
    inbound: Annotated[str, typer.Option(help="Topic of messages.")],
    outbound: Annotated[str, typer.Option(help="Topic of results.")],
    dead_letter: Annotated[
        str, typer.Option(help="Topic of messages that can't be done; INBOUND.dead if not given.")
    ] = "",
    group: Annotated[str, typer.Option(help="Consumer group; workers of one group share the work.")] = "tritonkit",
    brokers: Brokers = "127.0.0.1:9092",
    url: Annotated[str, typer.Option(envvar="TRITONKIT_URL", help="The server: grpc://host:port")] = (
        "grpc://127.0.0.1:8001"
    ),
    files: Annotated[Path | None, typer.Option(help="Folder that paths in messages may name files of.")] = None,
    in_flight: Annotated[int, typer.Option(min=1, help="Messages worked on at once.")] = 16,
    option: Annotated[
        list[str] | None, typer.Option(help="A field for every message: name=JSON or name=text. May be repeated.")
    ] = None,
    exactly_once: Annotated[
        bool, typer.Option("--exactly-once", help="Results and offsets in transactions of the broker.")
    ] = False,
    metrics_port: Annotated[int, typer.Option(help="Port for Prometheus; 0 takes a free one.")] = 9101,
    metrics_host: Annotated[str, typer.Option(help="Address for Prometheus.")] = "127.0.0.1",
    patience_s: Annotated[float, typer.Option("--patience", help="Seconds the server may be away.")] = 60.0,
    timeout_s: Annotated[float, typer.Option("--timeout", help="Longest wait for the next part of an answer.")] = 300.0,
    drain_s: Annotated[float, typer.Option("--drain", help="Seconds that messages in flight get at the end.")] = 30.0,
    session_timeout_s: Annotated[
        float, typer.Option("--session-timeout", help="Seconds until the group gives a dead worker's work away.")
    ] = 10.0,
) -> None:
    """Run a pipeline on every message of a Kafka topic until Ctrl-C or SIGTERM.

    An offset is committed after its result is on the outbound topic. What was in flight at a crash is done again: the
    result then comes twice, with the same key and the same header tritonkit-source, unless it is --exactly-once.
    """
    from batch.__main__ import named
    from worker.member import work
    from worker.metrics import Metrics
    from worker.settings import Settings

    settings = Settings(
        brokers=brokers,
        inbound=inbound,
        outbound=outbound,
        dead_letter=dead_letter or f"{inbound}.dead",
        group=group,
        url=url,
        pipeline=pipeline,
        options=dict(named(one) for one in option or ()),
        files=files,
        exactly_once=exactly_once,
        in_flight=in_flight,
        patience_s=patience_s,
        timeout_s=timeout_s,
        drain_s=drain_s,
        session_timeout_s=session_timeout_s,
    )
    metrics = Metrics()
    try:
        port = metrics.serve(metrics_port, metrics_host)
    except OSError as error:
        fail(f"--metrics-port {metrics_port}: {error.strerror}. Give another, or 0 for a free one.")
    print(f"metrics: http://{metrics_host}:{port}/metrics", flush=True)
    run(work(settings, metrics, said=say))


@app.command()
def results(
    topic: Annotated[str, typer.Option(help="Topic of results.")],
    brokers: Brokers = "127.0.0.1:9092",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 9102,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A site whose pages may listen, as https://example.org. May be repeated.")
    ] = None,
) -> None:
    """Send the results of a topic to WebSocket subscribers: all of them, or those with ?key=KEY."""
    from worker.fanout import serve_results
    from worker.member import on_signals

    async def serve() -> None:
        await serve_results(
            brokers, topic, host=host, port=port, origins=allow_origin or [], said=say, until=on_signals()
        )

    run(serve())


def run(work: Coroutine[Any, Any, None]) -> None:
    """Runs it; a problem is said on stderr, exit status 1."""
    import asyncio  # slow to load, like all that only a command itself needs

    from batch.errors import BatchError
    from clients.errors import ClientError
    from worker.errors import WorkerError

    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (WorkerError, BatchError, ClientError, OSError) as error:
        fail(str(error))


def say(line: str) -> None:
    """One line, at once."""
    print(line, flush=True)


def fail(message: str) -> NoReturn:
    """Say why on stderr and end."""
    print(message, file=sys.stderr)
    raise typer.Exit(1)


if __name__ == "__main__":
    app()
