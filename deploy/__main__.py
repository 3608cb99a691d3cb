"""Commands `tritonkit kubernetes`, `tritonkit ray`, `tritonkit monitoring` and `tritonkit top`."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from deploy.facts import Facts

app = typer.Typer()

Pipeline = Annotated[str, typer.Argument(help="A shipped pipeline, or path/to/file.py[:name]")]
Gpu = Annotated[str, typer.Option("--gpu", help="What one replica gets: L4, A100-80, 2xH100, 24GiB...")]
Llm = Annotated[str | None, typer.Option(help="Language model: a packaged name, a folder, a hub's name")]
Whisper = Annotated[str | None, typer.Option(help="Whisper checkpoint: a size, or a folder")]
Yolo = Annotated[str | None, typer.Option(help="Detection network: a packaged name, or a folder")]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests under way at once in one replica")]
QueueMs = Annotated[float, typer.Option("--queue-ms", min=1, help="Mean wait before a step that calls for replicas")]


@app.command()
def kubernetes(
    pipeline: Pipeline,
    gpu: Gpu,
    out: Annotated[Path, typer.Option(help="Folder to write base/, hpa/ and keda/ into.")],
    namespace: Annotated[str, typer.Option()] = "tritonkit",
    least: Annotated[int, typer.Option(min=0, help="Fewest replicas; 0 works with KEDA only.")] = 1,
    most: Annotated[int, typer.Option(min=1, help="Most replicas.")] = 4,
    queue_ms: QueueMs = 50,
    drain_s: Annotated[int, typer.Option("--drain", min=1, help="Seconds for requests in flight at the end.")] = 30,
    read_mb_s: Annotated[int, typer.Option("--read-mb-s", min=1, help="How fast weights are read, MB/s.")] = 200,
    models_claim: Annotated[str, typer.Option(help="Volume claim with the model repository.")] = "model-repository",
    concurrency: Concurrency = 8,
    llm: Llm = None,
    whisper: Whisper = None,
    yolo: Yolo = None,
) -> None:
    """Write what a pipeline needs on Kubernetes, with the numbers of its plan: kubectl apply -k OUT/hpa."""
    from deploy.kubernetes.kustomize import manifests
    from deploy.wishes import Wishes

    if least > most:
        fail(f"--least {least} is more than --most {most}.", status=2)
    wishes = Wishes(
        namespace=namespace,
        least=least,
        most=most,
        queue_s=queue_ms / 1000,
        drain_s=drain_s,
        read_bytes_s=read_mb_s * 10**6,
        models_claim=models_claim,
    )
    with told():
        facts = planned(pipeline, gpu, concurrency, llm, whisper, yolo)
        write(out, manifests(facts, wishes))


@app.command()
def monitoring(
    pipeline: Pipeline,
    gpu: Gpu,
    out: Annotated[Path, typer.Option(help="Folder to write rules.yaml and dashboard.json into.")],
    queue_ms: QueueMs = 50,
    concurrency: Concurrency = 8,
    llm: Llm = None,
    whisper: Whisper = None,
    yolo: Yolo = None,
) -> None:
    """Write Prometheus rules and a Grafana dashboard for a pipeline."""
    from deploy.kubernetes.kustomize import text
    from deploy.monitoring.dashboard import dashboard
    from deploy.monitoring.rules import rule_groups
    from deploy.wishes import Wishes

    with told():
        facts = planned(pipeline, gpu, concurrency, llm, whisper, yolo)
        rules = {"groups": rule_groups(facts, Wishes(queue_s=queue_ms / 1000))}
        write(out, {"rules.yaml": text(facts, rules), "dashboard.json": json.dumps(dashboard(facts), indent=1) + "\n"})


@app.command()
def ray(
    pipelines: Annotated[list[str], typer.Argument(help="Pipelines to serve, each at /NAME.")],
    repository: Annotated[Path, typer.Option(help="The model repository, as every machine sees it.")] = Path(
        "model_repository"
    ),
    out: Annotated[
        Path | None, typer.Option(help="Write the config file for `serve deploy` here, and run nothing.")
    ] = None,
    address: Annotated[str, typer.Option(help="Cluster: auto, host:port, or local for one here.")] = "local",
    host: Annotated[str, typer.Option(help="Address of the HTTP proxy.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the HTTP proxy.")] = 8000,
    least: Annotated[int, typer.Option(min=0, help="Fewest replicas; 0: none while nobody asks.")] = 1,
    most: Annotated[int, typer.Option(min=1, help="Most replicas.")] = 4,
    at_once: Annotated[int, typer.Option(min=1, help="Requests at once for which one replica is planned.")] = 8,
    cpus: Annotated[float, typer.Option(min=0, help="CPUs that Ray counts for a replica.")] = 1.0,
    down_s: Annotated[float, typer.Option("--down", min=1, help="Seconds of low load before one ends.")] = 300.0,
) -> None:
    """Serve pipelines on Ray Serve, each replica with a Triton of its own, until Ctrl-C."""
    from deploy.ray.orders import Orders, config_of

    if least > most:
        fail(f"--least {least} is more than --most {most}.", status=2)
    orders = Orders(
        repository=str(repository.resolve()),
        pipelines=tuple(pipelines),
        least=least,
        most=most,
        at_once=at_once,
        cpus=cpus,
        down_s=down_s,
        cache=str(Path(os.environ.get("TRITONKIT_CACHE", ".cache")).resolve()),
    )
    with told():
        if out is None:
            from deploy.ray.running import serve_until_told

            serve_until_told(orders, address, host, port, lambda line: print(line, flush=True))
        else:
            import yaml

            out.write_text(yaml.safe_dump(config_of(orders, host=host, port=port), sort_keys=False), encoding="utf-8")
            print(out)


@app.command()
def top(
    url: Annotated[str, typer.Option(help="The server's metrics.")] = "http://127.0.0.1:8002/metrics",
    every_s: Annotated[float, typer.Option("--every", min=0.2, help="Seconds between two looks.")] = 2.0,
    times: Annotated[int, typer.Option(min=0, help="Looks to take; 0: until Ctrl-C.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per model and look, for machines.")] = False,
) -> None:
    """Show what each model of a server does: requests, waits, batches."""
    from dataclasses import asdict
    from itertools import islice

    from rich.console import Console
    from rich.live import Live

    from deploy.monitoring.top import looks, table_of

    console = Console(highlight=False)
    with told(), suppress(KeyboardInterrupt):
        rows = islice(looks(url, every_s), times or None)
        if as_json:
            for look in rows:
                for one in look:
                    print(json.dumps(asdict(one)), flush=True)
        elif not console.is_terminal:
            for look in rows:
                console.print(table_of(look))
        else:
            with Live(console=console, auto_refresh=False, screen=False) as live:
                for look in rows:
                    live.update(table_of(look), refresh=True)


def planned(
    pipeline: str, gpu: str, concurrency: int, llm: str | None, whisper: str | None, yolo: str | None
) -> "Facts":
    """The facts of a pipeline on some GPUs; ends the command when it does not fit."""
    from builder import __main__ as edge
    from builder.commands.plan import devices_of, pinned_release, vllm_of
    from builder.memory.planning import Ask, plan_memory
    from builder.plan import make_plan
    from deploy.facts import facts_of
    from embedded.docker import read_versions

    pipelines = edge._pipelines([pipeline], whisper, yolo, llm, None)
    made = make_plan(pipelines, edge._release(pinned_release()))
    ask = Ask(devices=devices_of(gpu), version=vllm_of(made.target.container), concurrency=concurrency)
    memory = plan_memory(made, ask, edge._exports())
    if not memory.fits:
        fail("\n".join([*memory.refusals, f"What would fit: tritonkit plan {pipeline} --gpu {gpu}"]))
    return facts_of(made, memory, pipelines[0].name, read_versions())


def write(out: Path, files: dict[str, str]) -> None:
    """Writes text by path, and says which."""
    for path, content in files.items():
        file = out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        print(file)


@contextmanager
def told() -> Iterator[None]:
    """Problems go to stderr and end the command with status 1."""
    from builder.errors import BuildError
    from deploy.errors import DeployError

    try:
        yield
    except (BuildError, DeployError, OSError) as error:
        fail(str(error))


def fail(message: str, status: int = 1) -> NoReturn:
    """Say why on stderr and end."""
    print(message, file=sys.stderr)
    raise typer.Exit(status)


if __name__ == "__main__":
    app()
