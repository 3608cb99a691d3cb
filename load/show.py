"""A load in the terminal: how it goes, and what it found."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from load.words import duration, rate, share

if TYPE_CHECKING:
    from rich.console import Console

    from load.results import Percentiles, Result
    from load.running import Progress

LINE_S = 10.0  # between two lines of progress when nobody watches


@contextlib.contextmanager
def reporting(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A function that shows progress: a bar on a terminal, a line now and then elsewhere."""
    if not console.is_terminal:
        yield _lines(console)
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task("", total=None)

        def show(told: Progress) -> None:
            bar.update(
                task,
                description=told_in_words(told),
                total=told.total_s or None,
                completed=min(told.elapsed_s, told.total_s),
            )

        yield show


def _lines(console: Console) -> Callable[[Progress], None]:
    last = time.monotonic()

    def show(told: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_S:
            last = time.monotonic()
            console.print(f"{told.elapsed_s:.0f} s: {told_in_words(told)}")

    return show


def told_in_words(told: Progress) -> str:
    """One line."""
    if not told.total_s:
        return "asking each input alone"
    recent = sorted(told.recent_s)
    middle = f", lately {duration(recent[len(recent) // 2])}" if recent else ""
    errors = f", {told.not_right:,} not right" if told.not_right else ""
    return f"{told.doing}: {told.ended:,} answered, {told.sent - told.ended:,} in flight{errors}{middle}"


def show_result(result: Result, console: Console) -> None:
    """Writes what was found: speed and errors side by side, then the server's steps, then what to mind."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("", "mean", "p50", "p90", "p95", "p99", "worst"):
        table.add_column(heading, justify="right" if heading else "left")
    times = {
        "latency": result.latency_s,
        "first part": result.first_part_s,
        "first token": result.first_token_s,
        "between tokens": result.between_tokens_s,
    }
    for name, found in times.items():
        if found:
            table.add_row(name, *_cells(found))
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in result.outcomes.items() if count)
    console.print(
        f"{rate(result.per_s)} right answers, {share(result.error_rate)} not right "
        f"({len(result.records):,} requests, {rate(result.offered_per_s)} sent: {counts or 'none'})"
    )
    if result.tokens_per_s:
        console.print(f"{rate(result.tokens_per_s)} tokens")
    console.print(table)
    _show_models(result, console)
    for words, count in list(result.problems.items())[:5]:
        console.print(f"{count:,} x {words}", markup=False)
    if result.generator.ceiling_per_s:
        console.print(f"the load generator alone: {rate(result.generator.ceiling_per_s)}")
    for words in result.warnings:
        console.print(f"mind: {words}", markup=False)


def _cells(found: Percentiles) -> list[str]:
    return [duration(value) for value in (found.mean, found.p50, found.p90, found.p95, found.p99, found.worst)]


def _show_models(result: Result, console: Console) -> None:
    from rich import box
    from rich.table import Table

    if not result.models:
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("model", "requests", "failed", "queue", "input", "compute", "output", "batch"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for name, counts in result.models.items():
        spent = (counts.queue, counts.input, counts.infer, counts.output)
        table.add_row(
            name,
            f"{counts.requests:,}",
            f"{counts.failed:,}",
            *(duration(one.mean_s) for one in spent),
            f"{counts.mean_batch:.2f}",
        )
    console.print(table)
