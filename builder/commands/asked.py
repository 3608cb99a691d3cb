"""What all commands of the builder take, and how they tell what is wrong. Reads files and the cache, prints, exits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import shipped

if TYPE_CHECKING:
    from builder.findings import Finding
    from builder.pipeline import Pipeline

Names = Annotated[
    list[str] | None,
    typer.Argument(help="shipped pipelines, or path/to/file.py[:name]; all shipped ones if none is named"),
]
Out = Annotated[Path, typer.Option("--out", help="the model repository")]
Whisper = Annotated[str | None, typer.Option("--whisper", help="Whisper checkpoint: a size, or an export's folder")]
Yolo = Annotated[str | None, typer.Option("--yolo", help="detection network: a packaged name, or an export's folder")]
Llm = Annotated[str | None, typer.Option("--llm", help="language model: a packaged name, a folder, a hub's name")]
Set = Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE for a function of a pipeline that takes KEY")]
Target = Annotated[str, typer.Option("--target", help="release to build for: a container tag, or embedded")]


def pipelines_of(
    names: list[str] | None, whisper: str | None, yolo: str | None, llm: str | None, set_: list[str] | None
) -> tuple[Pipeline, ...]:
    """The pipelines of these names with these checkpoints and settings; all shipped ones if none is named."""
    from builder.loading import load_pipelines

    options = {"whisper": _exported("whisper", whisper), "yolo": _exported("yolo", yolo), "llm": llm}
    for pair in set_ or ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"{pair!r}: KEY=VALUE is needed", param_hint="--set")
        options[key] = value
    return load_pipelines(names or (), {key: value for key, value in options.items() if value is not None})


def _exported(role: str, choice: str | None) -> str | None:
    """A checkpoint of one's own as the folder that serves it; packaged names stay as they are.

    An export's folder serves as it is, so does a language model's in Hugging Face's layout. Any other path is exported,
    or found again in the cache by its content.
    """
    if choice is None:
        return None
    path = Path(choice)
    if role == "llm":
        kept = exports() / choice
        return str(next((one.absolute() for one in (path, kept) if one.is_dir()), choice))
    if not path.exists() or (path / f"{role}.json").is_file():
        return choice
    import weights.catalogue
    from weights.errors import WeightsError

    export: Callable[..., Path] = getattr(weights.catalogue, role)
    try:
        return str(export(choice, shipped.cache(), lambda line: print(line, file=sys.stderr)))
    except WeightsError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


def exports() -> Path:
    """The folder of what checkpoints are made into."""
    return shipped.cache() / "exports"


def release_of(name: str) -> str:
    """The name, if tritonkit knows that release."""
    from builder.catalog import target

    try:
        target(name)
    except KeyError:
        raise typer.BadParameter(f"{name!r}: no such release; a container tag as 24.10 is needed") from None
    return name


@contextmanager
def problems_told() -> Iterator[None]:
    """Problems of ours go to standard error and end the command with status 1."""
    from builder.errors import BuildError, CheckError

    try:
        yield
    except CheckError as error:
        tell(error.findings)
        raise typer.Exit(1) from None
    except BuildError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


def tell(findings: Iterable[Finding]) -> None:
    """Print findings for a person; end the command with status 1 if one is an error."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    styles = {"error": "bold red", "warning": "bold yellow", "advice": "bold blue"}
    errors = 0
    for one in findings:
        errors += one.severity == "error"
        console.print(Text.assemble((f"{one.severity} {one.code} ", styles[one.severity]), (one.where, "bold")))
        for label, text in (("found", one.found), ("expected", one.expected), ("fix", one.fix), ("why", one.why)):
            console.print(Text(f"  {label + ':':<10}{text}"))
    if errors:
        console.print(Text(f"{errors} error{'s' if errors > 1 else ''}"))
        raise typer.Exit(1)
