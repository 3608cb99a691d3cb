"""Command `tritonkit load`.

The result goes to stdout, progress and problems to stderr. Exit status: 0 good, 1 a limit was passed or nothing could
be measured, 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clients.defaults import DEFAULT_URL, MAX_TOKENS
from clients.errors import ClientError
from load.errors import WrongOption

if TYPE_CHECKING:
    from load.arrivals import Arrivals
    from load.results import Result
    from load.triton import Item

app = typer.Typer()
STDOUT = Path("-")
WIDE = 120


@app.callback()
def group() -> None:
    """Keeps `load` a command of its own when this is the only package."""


@app.command()
def load(
    model: Annotated[str, typer.Argument(help="A shipped pipeline, or any served model.")],
    url: Annotated[
        str, typer.Argument(envvar="TRITONKIT_URL", help="grpc://host:port or http://host:port")
    ] = DEFAULT_URL,
    rate: Annotated[float | None, typer.Option(help="Open loop: requests a second, by Poisson arrivals.")] = None,
    fixed: Annotated[bool, typer.Option("--fixed", help="With --rate: evenly spaced instead.")] = False,
    replay: Annotated[
        Path | None, typer.Option(help="Open loop: arrival times from a file, seconds, one a line.")
    ] = None,
    speed: Annotated[float, typer.Option(min=0.001, help="With --replay: 2 is twice as fast.")] = 1.0,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Closed loop: so many callers. 1 if none is said.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="How long. 10, or as long as the file of --replay.")] = None,
    warmup: Annotated[
        float, typer.Option(help="Seconds of load before that which do not count; not with --replay.")
    ] = 1.0,
    timeout: Annotated[float, typer.Option(help="Seconds after which a request is lost.")] = 60.0,
    audio: Annotated[list[Path] | None, typer.Option(help="Recordings: files or folders. May be repeated.")] = None,
    image: Annotated[list[Path] | None, typer.Option(help="Pictures: files or folders. May be repeated.")] = None,
    question: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    audio_seconds: Annotated[str, typer.Option(help="Cut or repeat recordings to lengths, such as 2,8,30.")] = "",
    image_pixels: Annotated[str, typer.Option(help="Scale pictures to longer sides, such as 320,1280.")] = "",
    max_tokens: Annotated[int, typer.Option(help="Longest answer, in tokens.")] = min(64, MAX_TOKENS),
    input: Annotated[
        list[str] | None, typer.Option(help="Any model: NAME=FILE or NAME=FOLDER. May be repeated.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Any model: a .jsonl file, inputs by name on each line.")] = None,
    shape: Annotated[
        list[str] | None, typer.Option(help="Any model: random values, NAME:3,224. May be repeated.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="With random values: items in each request.")] = 1,
    shared_memory: Annotated[bool, typer.Option("--shared-memory", help="Inputs through /dev/shm.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes that send.")] = 1,
    compare: Annotated[bool, typer.Option(help="Compare each answer with the one its input gets alone.")] = True,
    seed: Annotated[int, typer.Option(help="Of arrivals and of the order of inputs.")] = 0,
    ceiling: Annotated[
        bool, typer.Option("--ceiling", help="Also measure what the generator itself can send.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the result there; - is stdout.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report with charts there.")] = None,
    p95: Annotated[str, typer.Option(help="Exit with 1 if 95 % take longer, such as 200ms.")] = "",
    errors: Annotated[str, typer.Option(help="Exit with 1 if more are not right, such as 1%.")] = "0%",
) -> None:
    """Put a served pipeline or model under load: how fast, how often right, and where the server's time goes."""
    from rich.console import Console

    from load.plan import LoadPlan
    from load.running import ceiling_per_s, run, with_ceiling
    from load.show import reporting, show_result
    from load.triton import TritonTarget
    from load.words import read_duration, read_share

    with said_problems():
        most_s, most_errors = read_duration(p95) if p95 else None, read_share(errors)
        arrivals = chosen_arrivals(rate, fixed, replay, speed, concurrency)
        media: dict[str, Sequence | None] = {"audio": audio, "images": image, "questions": question}
        media |= {"audio_seconds": numbers(audio_seconds), "image_pixels": list(map(int, numbers(image_pixels)))}
        items = chosen_items(model, url, media, max_tokens, input or [], data, shape or [], batch)
        target = TritonTarget(url=url, items=items, shared_memory=shared_memory)
        plan = LoadPlan(
            target=target,
            arrivals=arrivals,
            seconds=seconds or default_seconds(arrivals),
            warmup_s=0.0 if replay else warmup,
            timeout_s=timeout,
            workers=workers,
            compare=compare,
            seed=seed,
        )
        with reporting(Console(stderr=True, highlight=False)) as report:
            result = run(plan, report)
        result = with_ceiling(result, ceiling_per_s(plan) if ceiling else None)
        about = {
            "model": model,
            "server": url,
            "inputs": f"inputs in {'shared memory' if shared_memory else 'the message'}",
        }
        if json_file != STDOUT:
            # A file or a pipe has no width of its own: no name is cut off in it.
            width = None if sys.stdout.isatty() else WIDE
            show_result(result, Console(highlight=False, soft_wrap=True, width=width))
        write(result, about, json_file, html)
        end(result, most_s, most_errors)


@contextlib.contextmanager
def said_problems() -> Iterator[None]:
    """Turns what can go wrong into a line on stderr and an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:  # whoever read the result has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ClientError, OSError) as error:
        print(f"tritonkit load: {error}", file=sys.stderr)
        raise typer.Exit(2 if isinstance(error, WrongOption) else 1) from None


def chosen_arrivals(
    rate: float | None, fixed: bool, replay: Path | None, speed: float, concurrency: int | None
) -> Arrivals:
    """The one pattern that the options name."""
    from load.arrivals import Closed, Fixed, Poisson, read_trace

    if sum(one is not None for one in (rate, replay, concurrency)) > 1:
        raise typer.BadParameter("only one of --rate, --replay and --concurrency can be given")
    if replay is not None:
        return read_trace(replay, speed)
    if rate is not None:
        return Fixed(per_s=rate) if fixed else Poisson(per_s=rate)
    return Closed(callers=concurrency or 1)


def default_seconds(arrivals: Arrivals) -> float:
    """As long as a trace is; 10 s of anything else."""
    from load.arrivals import Replay

    return arrivals.times_s[-1] + 1.0 if isinstance(arrivals, Replay) else 10.0


def chosen_items(
    model: str,
    url: str,
    media: dict[str, Sequence | None],
    max_tokens: int,
    inputs: Sequence[str],
    data: Path | None,
    shapes: Sequence[str],
    batch: int,
) -> tuple[Item, ...]:
    """What the options say is to be sent."""
    from load.inputs import file_items, random_items, row_items, signature_at
    from load.items import TAKES, items_for
    from load.words import read_shapes

    if model in TAKES and not (inputs or data or shapes):
        return items_for(model, max_tokens=max_tokens, **{name: value for name, value in media.items() if value})
    signature = signature_at(url, model)
    if data is not None:
        return row_items(signature, data)
    if inputs:
        paths: dict[str, list[Path]] = {}
        for name, path in map(named, inputs):
            paths.setdefault(name, []).append(Path(path))
        return file_items(signature, paths)
    return random_items(signature, shapes=read_shapes(shapes), batch=batch)


def named(text: str) -> tuple[str, str]:
    """Name and value in an option."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise typer.BadParameter(f"{text}: NAME=VALUE is needed")
    return name, value


def numbers(text: str) -> list[float]:
    """The numbers in a list with commas."""
    try:
        found = [float(one) for one in text.split(",") if one.strip()]
    except ValueError:
        found = [-1.0]
    if any(one <= 0 for one in found):
        raise typer.BadParameter(f"{text}: positive numbers with commas between them are needed")
    return found


def write(result: Result, about: dict[str, str], json_file: Path | None, html: Path | None) -> None:
    """Writes the files that were asked for."""
    if json_file is not None:
        from load.summary import summary

        text = json.dumps(summary(result, about), indent=2, ensure_ascii=False)
        if json_file == STDOUT:
            print(text, flush=True)
        else:
            json_file.write_text(f"{text}\n", encoding="utf-8")
    if html is not None:
        from load.report import load_page

        html.write_text(load_page(result, about), encoding="utf-8")


def end(result: Result, most_s: float | None, most_errors: float) -> None:
    """Ends with status 1 if a limit was passed, and says which."""
    from load.words import duration, share

    passed = []
    if result.error_rate > most_errors or not result.records:
        passed.append(f"{share(result.error_rate)} of {len(result.records):,} requests were not answered rightly")
    if most_s is not None and result.latency_s.p95 > most_s:
        passed.append(f"95 % took up to {duration(result.latency_s.p95)}, {duration(most_s)} is the limit")
    for words in passed:
        print(f"tritonkit load: {words}", file=sys.stderr)
    if passed:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
