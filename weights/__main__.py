"""Command of the weights: fetch and export checkpoints. Arguments, environment, printing and exit status live here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)
CHECKOUT = Path(__file__).parents[1]


@app.command()
def weights(
    whisper: Annotated[
        str, typer.Option(help="a packaged name, openai-whisper's name, a .pt, a CTranslate2 model.bin")
    ] = "tiny.en",
    yolo: Annotated[str, typer.Option(help="a packaged name, an Ultralytics .pt, an .onnx file")] = "yolov3-tiny",
    llm: Annotated[
        str, typer.Option(help="a packaged name, a folder in Hugging Face's layout, a hub's name")
    ] = "tiny-llama",
    accept_terms: Annotated[
        bool, typer.Option("--accept-terms", help="you have read and accept the weights' terms")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="print the packaged names and their licences")] = False,
) -> None:
    """Fetch checkpoints and export them; what is there already is recognised by its content and reused."""
    from weights import catalogue
    from weights.errors import WeightsError

    if list_:
        for role, name, size, rights in catalogue.PACKAGED:
            print(f"{role:<9}{name:<14}{size:<8}{rights}")
        return
    cache = Path(os.environ.get("TRITONKIT_CACHE", CHECKOUT / ".cache")).absolute()
    try:
        catalogue.whisper(whisper, cache, _say)
        catalogue.yolo(yolo, cache, _say)
        chosen = catalogue.llm(llm, cache, _say, accepts=_terms_are_accepted(accept_terms))
        if not isinstance(chosen, Path):
            _say(f"{chosen}: vLLM fetches it when the server starts")
    except WeightsError as error:
        print(f"tritonkit weights: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


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
