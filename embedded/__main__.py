"""Command `tritonkit serve`: the embedded server over a repository folder until Ctrl-C."""

from __future__ import annotations

import functools
import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

import shipped

if TYPE_CHECKING:
    from embedded.server import EmbeddedServer
    from starter.revive import Reviver

app = typer.Typer()

MOST_RESTARTS, WITHIN_S = 5, 600  # more often something is wrong that a new start does not cure
HOW_TO_ASK = {
    "assistant": "tritonkit ask 'What is in the picture?' --image PICTURE",
    "transcribe": "tritonkit transcribe RECORDING",
    "detect": "tritonkit detect PICTURE",
}


class Stopped(Exception):
    """A signal asked us to end."""


@app.callback()
def group() -> None:
    """Keeps `serve` a command of its own when this is the only package."""


@app.command()
def serve(
    directory: Annotated[Path, typer.Argument(help="The model repository.")] = Path("model_repository"),
    load: Annotated[
        list[str] | None,
        typer.Option("--load", help="Load only this model; an ensemble brings its steps. May be repeated."),
    ] = None,
    entry: Annotated[
        list[str] | None,
        typer.Option("--entry", help="Say ready when this model is. May be repeated. All loaded models if not given."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    http_port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8000,
    grpc_port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8001,
    metrics_port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8002,
    log: Annotated[
        Path | None, typer.Option(help="File for the whole log; .cache/logs/serve.log if not given.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads per model process.")] = None,
    timeout_s: Annotated[float, typer.Option("--timeout", help="Seconds until everything must have loaded.")] = 600.0,
    flag: Annotated[
        list[str] | None, typer.Option("--flag", help="A flag for tritonserver itself: --flag=--log-verbose=1")
    ] = None,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Load one model at a time, language models last, as on a GPU.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the server's log, not only warnings.")] = False,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Run NVIDIA's server in docker on the GPUs of this machine.")
    ] = False,
    image: Annotated[
        str, typer.Option("--image", help="With --gpu: built (docker/Dockerfile), or stock-vllm: NVIDIA's own.")
    ] = "built",
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="With --gpu: pools and shared memory, as `tritonkit plan --env` wrote."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --gpu: print the command only.")] = False,
) -> None:
    """Serve a model repository on this machine until Ctrl-C."""
    from embedded.errors import ServerError

    ports = {"http": http_port, "grpc": grpc_port, "metrics": metrics_port}
    if (dry_run or plan) and not gpu:
        fail(f"{'--dry-run' if dry_run else '--plan'} goes with --gpu.", status=2)
    if image not in ("built", "stock-vllm"):
        fail(f"--image {image}: built or stock-vllm is needed.", status=2)
    warn_of_open(host)
    try:
        if gpu:
            serve_by_docker(directory, load, host, ports, flag or [], dry_run, plan, stock=image == "stock-vllm")
            return
        cache = shipped.cache()
        status = serve_embedded(
            directory,
            load=load,
            entry=entry or [],
            host=host,
            http_port=http_port,
            grpc_port=grpc_port,
            metrics_port=metrics_port,
            log_file=log or cache / "logs" / "serve.log",
            cache=cache,
            cpu_threads=threads,
            ready_timeout_s=timeout_s,
            flags=flag or [],
            verbose=verbose,
            in_order=in_order,
        )
    except ServerError as error:
        fail(str(error))
    raise typer.Exit(status)


def warn_of_open(host: str) -> None:
    """Say so where others reach the server and need no key."""
    from embedded.restrict import is_loopback
    from starter.keys import INFERENCE_KEY

    if not is_loopback(host) and not os.environ.get(INFERENCE_KEY):
        say(
            f"warning: --host {host} lets other machines run models, and end their processes (docs/security.md); "
            f"a key is needed; set {INFERENCE_KEY} here and for your callers, or let people in by the gateway only"
        )


def serve_embedded(directory: Path, *, verbose: bool, in_order: bool = False, **options: object) -> int:
    """Exit status after the server has ended: 0 if a signal ended it, 1 if it ended by itself again and again."""
    from rich.console import Console

    from embedded.display import Display
    from embedded.errors import ServerDied
    from embedded.flags import controlled
    from embedded.restrict import management
    from embedded.server import EmbeddedServer
    from starter.keys import INFERENCE_KEY, MANAGEMENT_KEY, inference_flags
    from starter.revive import Reviver
    from starter.server import Server

    wanted = options["entry"] or options["load"] or ()
    if in_order:
        options |= {"load": (), "entry": ()}
    display = Display(Console(stderr=True, highlight=False, soft_wrap=True), everything=verbose)
    managed = management(str(options["host"]), os.environ.get(MANAGEMENT_KEY, ""))
    asked = inference_flags(os.environ.get(INFERENCE_KEY, ""))
    options["flags"] = (*managed.flags, *asked, *controlled(options["load"], options["flags"]))  # type: ignore[arg-type]
    make = functools.partial(EmbeddedServer, directory, on_load=display.on_load, on_line=display.on_line)
    server = make(**options)  # type: ignore[arg-type]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    ends: list[float] = []
    try:
        while True:
            began = time.monotonic()
            server.start()
            try:
                with display.live():
                    server.wait_ready()
            except ServerDied:
                if not ends:
                    raise
            else:
                names = load_in_order(server, wanted, managed.headers) if in_order else ()  # type: ignore[arg-type]
                say_ready(server, time.monotonic() - began, names)
                manager = Server(address=server.http, headers=managed.headers, load_timeout_s=server.ready_timeout_s)
                look_after(server, Reviver(manager, say))
            ends = [at for at in ends if time.monotonic() - at < WITHIN_S] + [time.monotonic()]
            if len(ends) > MOST_RESTARTS:
                break
            end(server)
            say(f"the server ended by itself; starting it again (its log so far: {keep_log(server)})")
            server = make(**{**options, **taken_ports(server)})  # type: ignore[arg-type]
    except Stopped:
        print("ending the server", file=sys.stderr, flush=True)
        end(server)
        return 0
    finally:
        end(server)
    words = f"the server ended by itself {len(ends)} times within {WITHIN_S // 60} minutes; look into {server.log_file}"
    print(words, file=sys.stderr)
    return 1


def look_after(server: EmbeddedServer, reviver: Reviver) -> None:
    """Returns when the server has ended by itself.

    Triton 2.51 does that when a model's process died holding a lock in shared memory, and when an ensemble's request
    fails at once, a race of its gRPC front that 24.12 does not have any more.
    """
    while server.is_running:
        server.poll()
        reviver.poll(server.server_pid())
        time.sleep(0.2)


def taken_ports(server: EmbeddedServer) -> dict[str, int]:
    """The ports of a server as the options for another one: callers find it where it was."""
    addresses = {"http": server.http, "grpc": server.grpc, "metrics": server.metrics.removesuffix("/metrics")}
    return {f"{name}_port": int(address.rpartition(":")[2]) for name, address in addresses.items()}


def keep_log(server: EmbeddedServer) -> Path:
    """Where the log of a server lies after it was moved out of the way of the next one's."""
    kept = server.log_file.with_name(f"{server.log_file.stem}-{time.strftime('%H%M%S')}{server.log_file.suffix}")
    return server.log_file.replace(kept)


def say(line: str) -> None:
    """Tell on stderr what happened."""
    print(line, file=sys.stderr, flush=True)


def stop(number: int, frame: object) -> NoReturn:
    """Signal handler: leave whatever is being done."""
    raise Stopped


def end(server: EmbeddedServer) -> None:
    """End the server in good order; at once when a second signal comes."""
    try:
        server.stop()
    except Stopped:
        server.stop(timeout_s=0)


def load_in_order(server: EmbeddedServer, wanted: Sequence[str], headers: Mapping[str, str]) -> tuple[str, ...]:
    """Load the models of a server that has none yet, as the program in the images does; returns what answers."""
    from embedded.errors import ServerError
    from starter.errors import StarterError
    from starter.order import read_repository, start_order
    from starter.server import Server
    from starter.start import compile_served_code, start_models

    try:
        models = read_repository(server.repository)
        order = start_order(models, wanted)
        compile_served_code(server.repository, [models[name] for name in order])
        entry = tuple(wanted) or order
        start_models(Server(address=server.http, headers=headers), models, order, entry, say)
    except StarterError as error:
        raise ServerError(str(error)) from error
    return entry


def say_ready(server: EmbeddedServer, seconds: float, names: Sequence[str] = ()) -> None:
    """Print the addresses and how to ask."""
    names = names or server.entry or server.load or sorted(server.loads.models)
    print(f"ready after {seconds:.1f} s: {', '.join(names)}")
    print(f"  HTTP     http://{server.http}")
    print(f"  gRPC     {server.grpc}")
    print(f"  metrics  {server.metrics}")
    print(f"  log      {server.log_file}")
    print(f"Ask it:    {how_to_ask(server)}")
    print("Ctrl-C ends the server.")
    sys.stdout.flush()


def how_to_ask(server: EmbeddedServer) -> str:
    """A command that asks what is served: one of the shipped pipelines, or any model what it takes and gives."""
    for pipeline, command in HOW_TO_ASK.items():
        if pipeline in server.loads.models:
            return f"{command} --url grpc://{server.grpc}"
    return f"curl http://{server.http}/v2/models/{min(server.loads.models)}"


def serve_by_docker(
    directory: Path,
    load: list[str] | None,
    host: str,
    ports: dict[str, int],
    flags: list[str],
    dry_run: bool,
    plan: Path | None = None,
    stock: bool = False,
) -> None:
    """Print the docker command and become it."""
    from embedded.docker import check_docker, docker_run, planned, read_versions
    from embedded.preconditions import check_repository

    check_repository(directory, load or [])
    versions = read_versions()
    sizes = planned({} if plan is None else read_versions(plan))
    command = docker_run(
        image=versions["TRITON_VLLM_IMAGE" if stock else "SERVE_IMAGE"],
        stock=versions["ONNXRUNTIME_GPU_VERSION"] if stock else None,
        repository=directory,
        host=host,
        ports=ports,
        # by name, also where it is all of them: the container's health check asks for these
        load=load or sorted(one.parent.name for one in directory.glob("*/config.pbtxt")),
        shm_size=sizes.shm_size,
        flags=(*sizes.flags, *flags),
    )
    print(shlex.join(command), flush=True)
    if not dry_run:
        check_docker(versions, stock=stock)
        os.execvp(command[0], command)


def fail(message: str, status: int = 1) -> NoReturn:
    """Say why on stderr and end."""
    print(message, file=sys.stderr)
    raise typer.Exit(status)


if __name__ == "__main__":
    app()
