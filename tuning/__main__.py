"""Command `tritonkit tune`. Arguments, environment, files, printing and exit status live here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import shipped

if TYPE_CHECKING:
    from load.triton import Item
    from tuning.tune import Tuned, Wish

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def tuning() -> None:
    """Settings that were measured."""


@app.command()
def tune(
    pipeline: Annotated[str, typer.Argument(help="a shipped pipeline, or path/to/file.py[:name]")],
    p95: Annotated[
        str, typer.Option("--p95", help="what 95 % of the latencies shall not exceed: 200ms, 1.5s")
    ] = "200ms",
    rate: Annotated[
        float | None, typer.Option("--rate", help="requests a second; the highest that keeps --p95 if not given")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="of each real load")] = 15.0,
    data: Annotated[
        Path | None, typer.Option("--data", help="JSONL with inputs, for a pipeline that is not a shipped one")
    ] = None,
    shape: Annotated[
        list[str] | None, typer.Option("--shape", help="NAME:DIMS of random inputs whose dims vary: X:1,1024")
    ] = None,
    audio_seconds: Annotated[
        list[float] | None, typer.Option("--audio-seconds", help="length of the recordings, of a shipped pipeline")
    ] = None,
    image_pixels: Annotated[
        list[int] | None, typer.Option("--image-pixels", help="longer side of the pictures, of a shipped pipeline")
    ] = None,
    write: Annotated[bool, typer.Option("--write/--no-write", help="write tuned.toml beside the pipeline")] = True,
    report: Annotated[
        Path | None, typer.Option("--report", help="an HTML page with the chart; x.svg, the chart")
    ] = None,
    measured: Annotated[
        Path | None, typer.Option("--measured", help="JSON with the service times, for `tritonkit plan --users`")
    ] = None,
) -> None:
    """Find the settings with which a pipeline keeps a promise on this machine, by few measurements and a model.

    Starts the embedded server, measures service times, simulates, and measures what the simulation proposes. Better
    settings go into tuned.toml beside the pipeline, from where `tritonkit build` takes them. Exit status 1 if the
    promise is not kept.
    """
    from rich.console import Console

    from builder.errors import BuildError
    from clients import ClientError
    from embedded.errors import ServerError
    from load.errors import WrongOption
    from load.words import read_duration, read_shapes
    from tuning.errors import TuningError
    from tuning.tune import Wish

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        promise_s = read_duration(p95)
        wish = Wish(promise_s=promise_s, per_s=rate, cores=len(os.sched_getaffinity(0)), seconds=seconds)
        inputs = Inputs(
            data=data,
            shapes=read_shapes(shape or ()),
            audio_seconds=tuple(audio_seconds or ()),
            image_pixels=tuple(image_pixels or ()),
        )
        tuned = tuned_pipeline(pipeline, wish, inputs, lambda line: console.print(line))
        show(tuned)
        if tuned.parts and write:
            print(f"{keep(pipeline, tuned)}: written; `tritonkit build` puts it into the models")
    except WrongOption as error:
        print(f"tritonkit tune: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except (BuildError, ClientError, ServerError, TuningError) as error:
        print(f"tritonkit tune: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    if report:
        report.write_text(report_text(report, tuned), encoding="utf-8")
    if measured:
        from tuning.report import as_json

        measured.write_text(as_json(tuned), encoding="utf-8")
    last = tuned.after if tuned.parts and tuned.after else tuned.before
    if last.p95_s > promise_s:
        print(f"95 % of the answers take up to {1000 * last.p95_s:.0f} ms; {p95} is asked for", file=sys.stderr)
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What is sent: rows of a file; else the samples of a shipped pipeline in these sizes; else random values."""

    data: Path | None
    shapes: Mapping[str, Sequence[int]]
    audio_seconds: Sequence[float]
    image_pixels: Sequence[int]

    def items(self, pipeline: str, grpc: str) -> tuple[Item, ...]:
        """For a pipeline of a server."""
        from load.inputs import random_items, row_items, signature_at
        from load.items import TAKES, items_for

        if self.data is None and pipeline in TAKES:
            return items_for(pipeline, audio_seconds=self.audio_seconds, image_pixels=self.image_pixels)
        signature = signature_at(f"grpc://{grpc}", pipeline)
        return row_items(signature, self.data) if self.data else random_items(signature, shapes=self.shapes)


def tuned_pipeline(name: str, wish: Wish, inputs: Inputs, tell: Callable[[str], None]) -> Tuned:
    """Build the pipeline as it is now into the cache, serve it, tune it."""
    from builder import checked_plan
    from builder.loading import load_pipelines
    from builder.repository import write_repository
    from embedded import EmbeddedServer
    from tuning.served import served
    from tuning.tune import Tuner

    cache = shipped.cache()
    (found,) = load_pipelines([name], {})
    repository = cache / "tune" / found.name
    write_repository(checked_plan([found]), repository, exports=cache / "exports", weights=True, only=True)
    tell(f"{found.name}: starting the server")
    with EmbeddedServer(repository, load=[found.name], cache=cache) as server:
        at = served(server)
        return Tuner(at, found.name, inputs.items(found.name, at.grpc), wish, tell).tune()


def keep(name: str, tuned: Tuned) -> Path:
    """Write tuned.toml beside the pipeline, what others have there kept."""
    from datetime import UTC, datetime

    from builder.loading import home_of
    from builder.model import merged, thaw
    from builder.tuned import FILE, read_tuned, remarks_of, tuned_text
    from tuning.report import remark

    folder = home_of(name)
    values = merged(thaw(read_tuned(folder)), {model: {"cpu": thaw(parts)} for model, parts in tuned.parts.items()})
    words = remark(tuned, datetime.now(UTC).date().isoformat(), int(tuned.network.capacity["cpu"]))
    remarks = {**remarks_of(folder), **dict.fromkeys(tuned.parts, words)}
    (folder / FILE).write_text(tuned_text(values, remarks), encoding="utf-8")
    return folder / FILE


def show(tuned: Tuned) -> None:
    """Print the tables."""
    from rich.console import Console
    from rich.table import Table

    from tuning.report import COLUMNS, rows, setting_rows

    console = Console(highlight=False)
    for some in (setting_rows(tuned), rows(tuned)):
        if some:
            table = Table(*COLUMNS, box=None, pad_edge=False)
            for row in some:
                table.add_row(*row)
            console.print(table)
            console.print()
    if not tuned.parts:
        console.print("nothing that was tried is better than what is there")


def report_text(path: Path, tuned: Tuned) -> str:
    """The page, or for x.svg the chart alone."""
    from tuning.report import chart, page

    return chart(tuned) if path.suffix == ".svg" else page(tuned)


def main() -> None:
    """Run the command."""
    app()


if __name__ == "__main__":
    main()
