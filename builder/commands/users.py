"""`tritonkit plan PIPELINE --users 500`: how many GPUs, or servers like the measured one, for so many users. On paper.

Without --measured the assistant is added up from data sheets and assumptions; with the JSON that `tritonkit tune
--measured` wrote, any pipeline from what was measured on a server like those that are to be bought.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

USUAL = "L40S"  # where no GPU is named
Told = tuple[list[str], list[list[dict[str, str]]]]  # the sums in words; tables, as rows of cells by column


def users_of(text: str) -> tuple[int, ...]:
    """(500, 1000000) of `500,1000000`."""
    try:
        found = tuple(int(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise typer.BadParameter(f"{text!r}: numbers as 500,1000000 are needed", param_hint="--users")
    return found


def plan_users(
    pipeline: str,
    users: str,
    *,
    gpu: str,
    measured: Path | None,
    assume: Path | None,
    hour: float | None,
    as_json: bool,
) -> None:
    """Print the sums and the table. Exit status 1 if something cannot be used as given."""
    from tuning.errors import TuningError

    try:
        lines, tables = (
            from_measured(pipeline, users_of(users), measured, assume, hour)
            if measured
            else on_paper(pipeline, users_of(users), gpu, assume, hour)
        )
    except TuningError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"tritonkit plan: {error}")
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps({"sums": lines, "tables": tables}, indent=1))
        return
    console = Console(highlight=False)
    console = Console(highlight=False, width=max(console.width, 110))
    for line in lines:
        console.print(line, soft_wrap=True)
    for rows in tables:
        table = Table(box=None, pad_edge=False)
        for name in rows[0]:
            table.add_column(name, no_wrap=True)
        for row in rows:
            table.add_row(*row.values())
        console.print()
        console.print(table)


def on_paper(pipeline: str, users: Sequence[int], gpu: str, assume: Path | None, hour: float | None) -> Told:
    """The assistant from data sheets: the sums in words, a row for each number of users."""
    from tuning.errors import TuningError
    from tuning.fleet import capacity, fleet, read_assumptions
    from tuning.sums import day_row, fleet_row, sums

    if pipeline != "assistant":
        raise TuningError(
            "--users",
            f"nothing is assumed about {pipeline}",
            "the assistant, or measured service times, are needed",
            "Run `tritonkit tune` with --measured FILE, and give the file here",
        )
    assumed = read_assumptions(assume)
    one = capacity(assumed, USUAL if gpu == "detected" else gpu, hour)
    fleets = [fleet(each, assumed, one) for each in users]
    tables = [[fleet_row(each, one) for each in fleets], [day_row(each, assumed, one) for each in fleets]]
    unnamed = [f"no --gpu was named: the sums are for an {USUAL}"] if gpu == "detected" else []
    return [*unnamed, *sums(assumed, one)], tables


def from_measured(pipeline: str, users: Sequence[int], measured: Path, assume: Path | None, hour: float | None) -> Told:
    """Servers like the one that was measured."""
    from tuning.errors import TuningError
    from tuning.fleet import read_assumptions
    from tuning.measured import read_measured, server_sums, servers_row

    found = read_measured(measured)
    if found.pipeline != pipeline:
        raise TuningError(str(measured), f"it is about {found.pipeline}", f"{pipeline} is needed", "Name the other")
    assumed: Mapping[str, Any] = read_assumptions(assume)
    return server_sums(found, assumed), [[servers_row(each, found, assumed, hour) for each in users]]
