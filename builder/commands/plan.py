"""Command `tritonkit plan`: the GPUs' memory, what to set, and how every tensor gets from step to step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder.commands.asked import Llm, Set, Whisper, Yolo, exports, pipelines_of, problems_told, release_of
from shipped import VERSIONS

if TYPE_CHECKING:
    from builder.commands.plan_beside import Beside
    from builder.memory.account import MemoryPlan
    from builder.memory.devices import Gpu
    from builder.plan import Plan

QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")


def plan(
    pipelines: Annotated[list[str], typer.Argument(help="shipped pipelines, or path/to/file.py[:name]")],
    gpu: Annotated[str, typer.Option("--gpu", help="L4, A100-80, 2xH100, 24GiB..., or detected")] = "detected",
    verify: Annotated[
        str | None,
        typer.Option("--verify", help="log of a server run with --log-verbose=1 (edge by edge), or URL of a server"),
    ] = None,
    profile: Annotated[str, typer.Option("--profile", help="cpu: only the edges, on the embedded server")] = "gpu",
    env: Annotated[Path | None, typer.Option("--env", help="file to write for docker compose: --env-file FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object, for machines")] = False,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="requests under way at once")] = 8,
    size: Annotated[
        list[str] | None, typer.Option("--size", help="TENSOR=DIMS of a usual request: AUDIO=480000, mel=80x3000")
    ] = None,
    reserve: Annotated[
        list[str] | None, typer.Option("--reserve", help="MODEL=SIZE of GPU memory that no file tells: clip=2GiB")
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option("--engine", help="KEY=VALUE of vLLM's arguments: max_model_len=8192")
    ] = None,
    chains: Annotated[int, typer.Option("--chains", min=1, help="each pipeline once on each of so many GPUs")] = 1,
    others: Annotated[
        int | None,
        typer.Option("--others-on", min=1, help="GPU of all models but language models, which have those from 0 on"),
    ] = None,
    turns: Annotated[
        list[str] | None, typer.Option("--one-at-a-time", help="model that takes turns with the others named so")
    ] = None,
    whisper: Whisper = None,
    yolo: Yolo = None,
    llm: Llm = None,
    set_: Set = None,
    target: Annotated[
        str | None, typer.Option("--target", help="release, as 26.07; the one docker/versions.env pins if not given")
    ] = None,
    users: Annotated[
        str | None, typer.Option("--users", help="how many GPUs or servers for so many users: 500,100000")
    ] = None,
    measured: Annotated[
        Path | None, typer.Option("--measured", help="with --users: what `tritonkit tune --measured` wrote")
    ] = None,
    assume: Annotated[
        Path | None,
        typer.Option("--assume", help="with --users: JSON with what differs from tuning/data/flagship.json"),
    ] = None,
    gpu_hour: Annotated[
        float | None, typer.Option("--gpu-hour", help="with --users: dollars of one for an hour")
    ] = None,
) -> None:
    """Plan the GPUs that a pipeline's models share. Exit status 1 if they do not fit, or a log says otherwise."""
    from builder.chains import placed
    from builder.commands import plan_text
    from builder.exclusive import taking_turns
    from builder.handover.verify import compare, read_placement
    from builder.memory.planning import Ask, all_edges, check_ask, plan_memory
    from builder.plan import make_plan

    if profile not in ("cpu", "gpu"):
        raise typer.BadParameter(f"{profile!r}: cpu or gpu is needed", param_hint="--profile")
    if users is not None:
        from builder.commands.users import plan_users

        without = {
            "--whisper": whisper, "--yolo": yolo, "--llm": llm, "--set": set_, "--engine": engine, "--size": size,
            "--reserve": reserve, "--chains": chains > 1, "--others-on": others, "--one-at-a-time": turns,
            "--target": target, "--verify": verify, "--env": env,
        }  # fmt: skip
        if given := [name for name, value in without.items() if value]:
            told = "changes nothing about sums from data sheets; --assume FILE says what differs"
            raise typer.BadParameter(f"{', '.join(given)} {told}", param_hint="--users")
        plan_users(pipelines[0], users, gpu=gpu, measured=measured, assume=assume, hour=gpu_hour, as_json=as_json)
        return
    release = release_of(target or pinned_release())
    with problems_told():
        asked = taking_turns(pipelines_of(pipelines, whisper, yolo, llm, set_), turns or ())
        made = make_plan(placed(asked, chains=chains, others=others), release)
        ask = Ask(
            devices=() if profile == "cpu" else devices_of(gpu),
            version=vllm_of(made.target.container),
            concurrency=concurrency,
            sizes={key: dims_of(value) for key, value in pairs(size, "--size")},
            reserved={key: bytes_of(value) for key, value in pairs(reserve, "--reserve")},
            arguments={key: value_of(value) for key, value in pairs(engine, "--engine")},
        )
        check_ask(made, ask)
        edges = all_edges(made, made.catalog(profile), ask, embedded=profile == "cpu")
        memory = None if profile == "cpu" else plan_memory(made, ask, exports())
    if env is not None and memory is not None and memory.fits:
        env.write_text(plan_text.as_env(memory), encoding="utf-8")
    compared = beside = None
    if verify is not None and verify.startswith(("http://", "https://")):
        beside = verified(verify, made, profile, memory)
    elif verify is not None:
        if not Path(verify).is_file():
            raise typer.BadParameter(f"{verify}: no such file, and no URL", param_hint="--verify")
        text = Path(verify).read_text(encoding="utf-8", errors="replace")
        compared = compare(edges, read_placement(text))
    if as_json:
        print(json.dumps(plan_text.as_json(memory, edges, compared, beside), indent=1))
    else:
        plan_text.show(memory, edges, compared, beside)
    wrong = any(one.is_wrong for one in compared or ()) or (beside is not None and beside.is_wrong)
    wrong |= compared is not None and not any(one.times for one in compared)  # nothing was verified
    if (memory is not None and not memory.fits) or wrong:
        raise typer.Exit(1)


def verified(url: str, made: Plan, profile: str, memory: MemoryPlan | None) -> Beside:
    """What a running server says, beside the plan; ends the command where none answers."""
    from builder.commands.plan_beside import beside_plan
    from builder.commands.plan_server import NoServer, ask, measured_here

    catalog = made.catalog(profile)
    try:
        answer = ask(url, catalog.entries)
    except NoServer as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from error
    return beside_plan(answer, catalog, memory, measured_here(url, memory.accounts if memory else ()))


def planned_for(plan: Plan, gpu: str, engine: list[str] | None, exports: Path) -> Plan:
    """The plan with what its models are to be given on these GPUs; ends the command if they do not fit."""
    from builder.commands import plan_text
    from builder.memory.applied import applied
    from builder.memory.planning import Ask, check_ask, plan_memory

    arguments = {key: value_of(value) for key, value in pairs(engine, "--engine")}
    ask = Ask(devices=devices_of(gpu), version=vllm_of(plan.target.container), arguments=arguments)
    check_ask(plan, ask)
    memory = plan_memory(plan, ask, exports)
    if not memory.fits:
        plan_text.show_refusals(memory)
        raise typer.Exit(1)
    return applied(plan, memory, arguments)


def pinned_release() -> str:
    """The release that the image is pinned to."""
    return pinned("TRITON_RELEASE")


def pinned(name: str) -> str:
    """What docker/versions.env says of a name."""
    lines = VERSIONS.read_text(encoding="utf-8").splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith(f"{name}="))


def vllm_of(container: str) -> tuple[int, ...]:
    """The version of vLLM in a release's image; that of the newest release that is known where it has none."""
    from builder.fields import table
    from builder.memory.settings import vllm_version

    rows = {row["container"]: row["vllm"] for row in table()["containers"] if row.get("vllm")}
    return vllm_version(rows.get(container) or rows[max(rows)])


def devices_of(text: str) -> tuple[Gpu, ...]:
    """The GPUs that a person named, or that this machine has."""
    from builder.errors import DeclarationError
    from builder.memory.devices import detected, gpus

    if text != "detected":
        return gpus(text)
    try:
        listing = subprocess.run(QUERY, capture_output=True, text=True, timeout=30, env={**os.environ, "LC_ALL": "C"})
        found = detected(listing.stdout)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        found = ()
    if not found:
        raise DeclarationError(
            where="--gpu detected",
            found="nvidia-smi finds no GPU on this machine",
            expected="a GPU to plan for is needed",
            fix="Name one: --gpu L4, --gpu A100-80, --gpu 24GiB",
        )
    return found


def pairs(given: list[str] | None, option: str) -> list[tuple[str, str]]:
    """KEY=VALUE, apart."""
    found = []
    for one in given or ():
        key, equals, value = one.partition("=")
        if not equals or not key or not value:
            raise typer.BadParameter(f"{one!r}: KEY=VALUE is needed", param_hint=option)
        found.append((key, value))
    return found


def dims_of(text: str) -> tuple[int, ...]:
    """(80, 3000) of `80x3000`."""
    try:
        return tuple(int(part) for part in text.replace(",", "x").split("x"))
    except ValueError:
        raise typer.BadParameter(f"{text!r}: sizes as 80x3000 are needed", param_hint="--size") from None


def bytes_of(text: str) -> int:
    """Bytes of `2GiB`."""
    from builder.memory.devices import parse_bytes

    found = parse_bytes(text)
    if found is None:
        raise typer.BadParameter(f"{text!r}: a size as 2GiB is needed", param_hint="--reserve")
    return found


def value_of(text: str) -> Any:
    """A number or a truth value where the text is one; else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
