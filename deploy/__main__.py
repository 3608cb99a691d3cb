"""Commands `tritonkit kubernetes`, `tritonkit ray`, `tritonkit monitoring` and `tritonkit top`."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import shipped

if TYPE_CHECKING:
    from deploy.facts import Facts

app = typer.Typer()

Pipeline = Annotated[str, typer.Argument(help="A shipped pipeline, or path/to/file.py[:name]")]
Gpu = Annotated[str, typer.Option("--gpu", help="What one replica gets: L4, A100-80, 2xH100, 24GiB...")]
Llm = Annotated[str | None, typer.Option(help="Language model: a packaged name, a folder, a hub's name")]
Whisper = Annotated[str | None, typer.Option(help="Whisper checkpoint: a size, or a folder")]
Yolo = Annotated[str | None, typer.Option(help="Detection network: a packaged name, or a folder")]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests under way at once in one replica")]
FirstToken = Annotated[float, typer.Option("--first-token", min=0.01, help="Seconds that a first token may take.")]
# Short names, as `tritonkit serve --gpu` has them: the image, and what it gets at its start.
IMAGES = {"built": ("SERVE_IMAGE", ""), "stock-vllm": ("TRITON_VLLM_IMAGE", "ONNXRUNTIME_GPU_VERSION")}
Runbook = Annotated[str, typer.Option(help="Address of docs/runbook.md where people read it; alerts link there")]
QueueMs = Annotated[float, typer.Option("--queue-ms", min=1, help="Mean wait before a step that calls for replicas")]


@app.command()
def kubernetes(
    pipeline: Pipeline,
    gpu: Gpu,
    out: Annotated[Path, typer.Option(help="Folder to write base/, hpa/, keda/, gateway/ into.")],
    namespace: Annotated[str, typer.Option()] = "tritonkit",
    least: Annotated[int, typer.Option(min=0, help="Fewest replicas; 0 works with KEDA only.")] = 1,
    most: Annotated[int, typer.Option(min=1, help="Most replicas.")] = 4,
    queue_ms: QueueMs = 50,
    first_token_s: FirstToken = 2.0,
    runbook: Runbook = "docs/runbook.md",
    drain_s: Annotated[int, typer.Option("--drain", min=1, help="Seconds for requests in flight at the end.")] = 30,
    read_mb_s: Annotated[int, typer.Option("--read-mb-s", min=1, help="How fast weights are read, MB/s.")] = 200,
    traces_url: Annotated[str, typer.Option("--traces", help="Collector of traces: http://host:4318/v1/traces")] = "",
    brokers: Annotated[str, typer.Option(help="Kafka, for --inbound.")] = "kafka:9092",
    inbound: Annotated[str, typer.Option(help="Topic for a worker, which worker/ then runs.")] = "",
    outbound: Annotated[str, typer.Option(help="Topic of its results; INBOUND.results if not given.")] = "",
    models_claim: Annotated[str, typer.Option(help="Volume claim with the model repository.")] = "model-repository",
    concurrency: Concurrency = 8,
    llm: Llm = None,
    whisper: Whisper = None,
    yolo: Yolo = None,
) -> None:
    """Write what a pipeline needs on Kubernetes, with the numbers of its plan.

    kubectl apply -k OUT/hpa -k OUT/gateway
    """
    from deploy.kubernetes.kustomize import manifests
    from deploy.wishes import Wishes

    if least > most:
        fail(f"--least {least} is more than --most {most}.", status=2)
    wishes = Wishes(
        namespace=namespace,
        least=least,
        most=most,
        queue_s=queue_ms / 1000,
        first_token_s=first_token_s,
        drain_s=drain_s,
        read_bytes_s=read_mb_s * 10**6,
        models_claim=models_claim,
        at_once=concurrency,
        traces_url=traces_url,
        runbook=runbook,
        brokers=brokers,
        inbound=inbound,
        outbound=outbound or f"{inbound}.results",
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
    first_token_s: FirstToken = 2.0,
    runbook: Runbook = "docs/runbook.md",
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
        wishes = Wishes(queue_s=queue_ms / 1000, first_token_s=first_token_s, runbook=runbook)
        rules = {"groups": rule_groups(facts, wishes)}
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
    gpu: Annotated[
        str, typer.Option("--gpu", help="What a replica gets: GPUs and pools as planned for --at-once.")
    ] = "",
    image: Annotated[
        str, typer.Option("--image", help="Replicas run this image by docker: built, or stock-vllm; embedded if empty.")
    ] = "",
    apart: Annotated[bool, typer.Option("--apart", help="An application for each pipeline; with --out.")] = False,
    env: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the replicas; may be repeated.")] = None,
) -> None:
    """Serve pipelines on Ray Serve, each replica with a Triton of its own, until Ctrl-C."""
    from deploy.ray.orders import Orders, config_of, sizes_of

    if least > most:
        fail(f"--least {least} is more than --most {most}.", status=2)
    if apart and out is None:
        fail("--apart goes with --out: serve deploy starts several applications.", status=2)
    if image and image not in IMAGES:
        fail(f"--image {image}: {' or '.join(IMAGES)} is needed.", status=2)
    if image and not gpu:
        fail("--image goes with --gpu: a container gets the GPUs that its replica has.", status=2)
    with told():
        plans = [planned(one, gpu, at_once, None, None, None) for one in pipelines] if gpu else []
    orders = Orders(
        repository=str(repository.resolve()),
        pipelines=tuple(pipelines),
        least=least,
        most=most,
        at_once=at_once,
        cpus=cpus,
        down_s=down_s,
        cache=str(shipped.cache()),
        env=dict(one.partition("=")[::2] for one in env or ()),
        **(image_of(image) | sizes_of(plans)),
    )
    with told():
        if out is None:
            from deploy.ray.running import serve_until_told

            serve_until_told(orders, address, host, port, lambda line: print(line, flush=True))
        else:
            import yaml

            out.write_text(
                yaml.safe_dump(config_of(orders, apart=apart, host=host, port=port), sort_keys=False), encoding="utf-8"
            )
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


@app.command("log-metrics")
def log_metrics(
    log: Annotated[Path, typer.Argument(help="The server's log; need not be there yet.")],
    host: Annotated[str, typer.Option(help="Address for Prometheus.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 9103,
) -> None:
    """Follow a server's log, print it, and count for Prometheus how often a memory pool was full; until Ctrl-C."""
    from deploy.monitoring.fallbacks import Fallbacks, followed

    fallbacks = Fallbacks()
    with suppress(KeyboardInterrupt):
        print(f"ready: http://{host}:{fallbacks.serve(port, host)}/metrics", file=sys.stderr, flush=True)
        for line in followed(log):
            fallbacks.read(line)
            print(line, flush=True)


@app.command()
def traces(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 4318,
    quiet_s: Annotated[float, typer.Option("--quiet", min=0.1, help="Seconds without news that end a trace.")] = 2.0,
    times: Annotated[int, typer.Option(min=0, help="Traces to show; 0: until Ctrl-C.")] = 0,
) -> None:
    """Collect traces by OTLP over HTTP, and show each as a tree: the caller, the ensemble, its steps."""
    from itertools import islice

    from deploy.monitoring.collector import Collector
    from deploy.monitoring.spans import trace_flags, trace_lines

    with told(), suppress(KeyboardInterrupt), Collector(host, port) as collector:
        print(f"ready: {collector.url}. A server sends with {' '.join(trace_flags(collector.url))}", flush=True)
        for spans in islice(collector.traces(quiet_s), times or None):
            print("\n".join(trace_lines(spans)), flush=True)


def planned(
    pipeline: str, gpu: str, concurrency: int, llm: str | None, whisper: str | None, yolo: str | None
) -> "Facts":
    """The facts of a pipeline on some GPUs; ends the command when it does not fit."""
    from builder.commands.asked import exports, pipelines_of, release_of
    from builder.commands.plan import devices_of, pinned_release, vllm_of
    from builder.memory.planning import Ask, plan_memory
    from builder.plan import make_plan
    from deploy.facts import facts_of
    from embedded.docker import read_versions

    pipelines = pipelines_of([pipeline], whisper, yolo, llm, None)
    made = make_plan(pipelines, release_of(pinned_release()))
    ask = Ask(devices=devices_of(gpu), version=vllm_of(made.target.container), concurrency=concurrency)
    memory = plan_memory(made, ask, exports())
    if not memory.fits:
        fail("\n".join([*memory.refusals, f"What would fit: tritonkit plan {pipeline} --gpu {gpu}"]))
    return facts_of(made, memory, pipelines[0].name, read_versions())


def image_of(image: str) -> dict[str, Any]:
    """What orders say of an image by its short name; nothing of none."""
    if not image:
        return {}
    from embedded.docker import read_versions

    versions = read_versions()
    name, addition = IMAGES[image]
    return {"image": versions[name], "stock": versions[addition] if addition else ""}


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
