"""Command of the weights: fetch and export checkpoints. Arguments, environment, printing and exit status live here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import shipped

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def weights(
    whisper: Annotated[
        str, typer.Option(help="a packaged name, one of openai-whisper, a .pt, a model.bin")
    ] = "tiny.en",
    yolo: Annotated[str, typer.Option(help="a packaged name, an Ultralytics .pt, an .onnx file")] = "yolov3-tiny",
    llm: Annotated[str, typer.Option(help="a packaged name, a folder, a hub's name")] = "tiny-llama",
    dtype: Annotated[str, typer.Option(help="of Whisper's weights: float32, or float16 for GPUs")] = "float32",
    image_size: Annotated[
        int | None, typer.Option(help="of a YOLO .pt, or an .onnx of free size: pixels a side")
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="YOLO .pt: weights in float16")] = False,
    nms: Annotated[str, typer.Option(help="YOLO .pt: outside (our step), inside (the graph), end2end")] = "outside",
    labels: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="class names for an .onnx without any, one a line")
    ] = None,
    accept_terms: Annotated[bool, typer.Option("--accept-terms", help="you accept the weights' terms")] = False,
    list_: Annotated[bool, typer.Option("--list", help="print the packaged names and their rights")] = False,
) -> None:
    """Fetch checkpoints and export them; what is there already is recognised by its content and reused."""
    from weights import catalogue
    from weights.errors import WeightsError
    from weights.yolo.checkpoint import CheckpointOptions

    if list_:
        for role, name, size, rights in catalogue.PACKAGED:
            print(f"{role:<9}{name:<14}{size:<8}{rights}")
        return
    cache = shipped.cache()
    options = CheckpointOptions(image_size=(image_size, image_size) if image_size else None, half=half, nms=nms)
    names = labels.read_text(encoding="utf-8").splitlines() if labels else None
    try:
        made = {
            "whisper": catalogue.whisper(whisper, cache, _say, dtype=dtype),
            "yolo": catalogue.yolo(yolo, cache, _say, options=options, labels=names),
            "llm": catalogue.llm(llm, cache, _say, accepts=_terms_are_accepted(accept_terms)),
        }
    except (WeightsError, OSError) as error:
        print(f"tritonkit weights: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    for role, place in made.items():
        print(f"{role}: {place}" if isinstance(place, Path) else f"{role}: {place}, fetched by vLLM when it starts")


def _say(line: str) -> None:
    print(f"weights: {line}", flush=True)


def _terms_are_accepted(given: bool) -> Callable[[str], bool]:
    """Asks a person at a terminal, once the terms were shown; elsewhere only the option counts."""

    def accepted(terms: str) -> bool:
        if given or not sys.stdin.isatty():
            return given
        print(terms)
        return typer.confirm("Do you accept these terms?")

    return accepted


def main() -> Any:
    """Run the command."""
    return app()


if __name__ == "__main__":
    main()
