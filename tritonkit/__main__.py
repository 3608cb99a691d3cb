"""The console command `tritonkit`: the commands of all packages under one name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Annotated

import typer

import shipped

# Package -> the extra of `pip install 'tritonkit[...]'` that holds what its commands import.
EXTRAS = {
    "builder": "",
    "embedded": "server",
    "clients": "clients",
    "load": "clients",
    "release": "clients",
    "weights": "export",
    "batch": "batch",
    "worker": "kafka",
    "deploy": "deploy",
    "tuning": "tuning",
}


HELP = """Describe an NVIDIA Triton pipeline in Python, check it, write its model repository, serve it, ask it.

Each command explains itself: tritonkit COMMAND --help.
"""


def main() -> None:
    """Run the command line. Exit status: 0 good, 1 problems, 2 wrong usage."""
    app, owners = joined()
    try:
        app()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in EXTRAS:
            raise
        command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        print(missing_package(command, error.name or str(error), owners.get(command, "")), file=sys.stderr)
        sys.exit(1)


def joined() -> tuple[typer.Typer, dict[str, str]]:
    """One app with every command, and which package each command comes from."""
    app = typer.Typer(
        name="tritonkit", help=HELP, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    app.callback()(tritonkit)
    app.command()(demo)
    app.command()(trace)
    owners: dict[str, str] = {"demo": "embedded", "trace": "embedded"}
    for package in EXTRAS:
        if importlib.util.find_spec(package) is None:
            continue
        theirs: typer.Typer = importlib.import_module(f"{package}.__main__").app
        app.registered_commands += theirs.registered_commands
        app.registered_groups += theirs.registered_groups
        owners |= dict.fromkeys(command_names(theirs), package)
    return app, owners


def command_names(app: typer.Typer) -> list[str]:
    """The words that call the commands of one app."""
    names = [
        command.name or command.callback.__name__.replace("_", "-")
        for command in app.registered_commands
        if command.callback
    ]
    return names + [str(group.name) for group in app.registered_groups if group.name]


def missing_package(command: str, module: str, owner: str) -> str:
    """One line for a command whose optional packages are not installed."""
    extra = EXTRAS.get(owner, "")
    remedy = f"pip install 'tritonkit[{extra}]'" if extra else "pip install tritonkit"
    return f"tritonkit {command}: the Python package `{module}` is not installed. Install what it needs: {remedy}"


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if not wanted:
        return
    from importlib import metadata  # slow to load, and nothing else needs it

    try:
        print(f"tritonkit {metadata.version('tritonkit')}")
    except metadata.PackageNotFoundError:
        print("tritonkit, not installed (run from its source folder)")
    raise typer.Exit


def tritonkit(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Options of the command itself; its help text is HELP."""


def demo(
    directory: Annotated[Path, typer.Argument(help="Where the shipped pipelines are.")] = Path("model_repository"),
    audio: Annotated[Path, typer.Option(help="A recording.")] = shipped.RECORDING,
    image: Annotated[Path, typer.Option(help="A picture.")] = shipped.PHOTO,
    question: Annotated[str, typer.Option(help="What to ask about them.")] = "What do you hear and see?",
) -> None:
    """Serve a repository on the embedded server, ask it about a recording and a photo, end it."""
    from rich.console import Console

    from clients import ClientError
    from embedded.errors import ServerError
    from tritonkit.demo import Demo

    cache = shipped.cache()
    try:
        Demo(directory, cache, Console(highlight=False, soft_wrap=True)).run(audio, image, question)
    except (ServerError, ClientError, FileNotFoundError) as error:
        print(f"tritonkit demo: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def trace(
    pipeline: Annotated[str, typer.Argument(help="transcribe, detect or assistant.")],
    directory: Annotated[Path, typer.Argument(help="Where it is.")] = Path("model_repository"),
    audio: Annotated[Path, typer.Option(help="A recording.")] = shipped.RECORDING,
    image: Annotated[Path, typer.Option(help="A picture.")] = shipped.PHOTO,
    question: Annotated[str, typer.Option(help="What to ask about them.")] = "What do you hear and see?",
    requests: Annotated[int, typer.Option(min=1, help="Of so many, the one of middle length is shown.")] = 5,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write a picture, x.svg, or a page, x.html.")] = None,
) -> None:
    """Show where a request's time goes, step by step, on the embedded server: queue, input, compute, output, gaps."""
    from clients import ClientError
    from embedded.errors import ServerError
    from tritonkit.timeline import as_page, as_svg, as_text
    from tritonkit.tracing import trace_request

    if out is not None and out.suffix not in (".svg", ".html"):
        print(f"tritonkit trace: --out {out}: a file x.svg or x.html is needed. Name such a one.", file=sys.stderr)
        raise typer.Exit(2)
    cache = shipped.cache()
    try:
        timeline = trace_request(
            directory, pipeline, recording=audio, photo=image, question=question, requests=requests, cache=cache
        )
    except (ServerError, ClientError, FileNotFoundError) as error:
        print(f"tritonkit trace: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(as_text(timeline))
    if out is not None:
        out.write_text(as_svg(timeline) if out.suffix == ".svg" else as_page(timeline), encoding="utf-8")


if __name__ == "__main__":
    main()
