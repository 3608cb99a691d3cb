"""Command `tritonkit engines`: builds the TensorRT plans of a pipeline's models, on the GPU that will run them."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from builder.commands.asked import exports, pipelines_of, problems_told, release_of

if TYPE_CHECKING:
    from builder.model import Model

CAPABILITY = ("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")


def engines(
    pipelines: Annotated[list[str], typer.Argument(help="shipped pipelines, or path/to/file.py[:name]")],
    target: Annotated[
        str | None, typer.Option("--target", help="release, as 26.07; the one docker/versions.env pins if not given")
    ] = None,
    print_only: Annotated[bool, typer.Option("--print", help="only say what would be run")] = False,
) -> None:
    """Build TensorRT plans in the release's own image, on this machine's first GPU. Exit status 1 if it cannot."""
    from builder.commands.plan import pinned_release
    from builder.plan import make_plan

    with problems_told():
        plan = make_plan(pipelines_of(pipelines, None, None, None, None), release_of(target or pinned_release()))
    folder = exports()
    wanted = [model for model in plan.models if model.tensorrt is not None]
    if not wanted:
        print("no model of these pipelines runs a TensorRT plan: see tensorrt_plan(...)")
        return
    commands = {model.name: command_of(model, folder, plan.target.container) for model in wanted}
    if print_only:
        for command in commands.values():
            print(shlex.join(command))
        return
    missing = what_is_missing(wanted, folder)
    if missing:
        print(f"{missing} A plan is built on the kind of GPU that runs it; there, run:", file=sys.stderr)
        for command in commands.values():
            print(f"  {shlex.join(command)}", file=sys.stderr)
        raise typer.Exit(1)
    capability = subprocess.run(CAPABILITY, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    for model in wanted:
        _build(
            model, folder, commands[model.name], {"container": plan.target.container, "compute_capability": capability}
        )


def command_of(model: Model, exports: Path, container: str) -> list[str]:
    """`docker run` of the release's image, which holds the TensorRT that will load the plan, on the first GPU."""
    from builder.backends.tensorrt_plan import trtexec

    plan = model.tensorrt
    assert plan is not None
    source = exports / plan.source
    inside = {source.parent: "/source", exports / plan.target.parent: "/plans"}
    mounts = [part for folder, place in inside.items() for part in ("-v", f"{folder.resolve()}:{place}")]
    build = trtexec(plan, f"/source/{source.name}", f"/plans/{plan.target.name}")
    return ["docker", "run", "--rm", "--gpus", "device=0", *mounts, _image(container), *build]


def _image(container: str) -> str:
    """The release's image with all of NVIDIA's backends, named as docker/versions.env names that of its own release."""
    from builder.commands.plan import pinned

    return pinned("TRITON_FULL_IMAGE").replace(pinned("TRITON_RELEASE"), container)


def what_is_missing(models: list[Model], exports: Path) -> str:
    """Why plans cannot be built on this machine; empty if they can."""
    for model in models:
        if model.tensorrt is not None and not (exports / model.tensorrt.source).is_file():
            return f"{model.name}: there is no {exports / model.tensorrt.source}; run `tritonkit weights` first."
    if shutil.which("nvidia-smi") is None or not any(Path("/dev").glob("nvidia[0-9]*")):
        return "There is no NVIDIA GPU on this machine."
    if shutil.which("docker") is None:
        return "There is no docker on this machine."
    return ""


def _build(model: Model, exports: Path, command: list[str], manifest: dict[str, str]) -> None:
    assert model.tensorrt is not None
    target = exports / model.tensorrt.target
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"{model.name}: {shlex.join(command)}")
    if subprocess.run(command).returncode or not target.is_file():
        print(f"{model.name}: trtexec built no plan; its own words stand above", file=sys.stderr)
        raise typer.Exit(1)
    target.with_suffix(".json").write_text(json.dumps(manifest) + "\n", encoding="utf-8")
    print(f"{model.name}: {target}; `tritonkit build` links it")
