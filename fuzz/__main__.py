"""`python -m fuzz`: random repositories, our verdict against the real server's. Exit status 1 on a disagreement."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fuzz.requests import Answer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def main(
    seed: Annotated[int, typer.Option(help="the first seed; each start takes the next")] = 31,
    repositories: Annotated[int, typer.Option(help="how many repositories in all")] = 2000,
    per_start: Annotated[int, typer.Option(help="repositories of one server start")] = 400,
    pool: Annotated[int, typer.Option(help="models that the repositories of one start share")] = 20,
    models: Annotated[float, typer.Option(help="models of its own that a repository has on average")] = 0.3,
    ask: Annotated[int, typer.Option(help="random requests to each ensemble that loads; 0 for none")] = 0,
    keep: Annotated[Path | None, typer.Option(help="leave the repositories in this folder")] = None,
) -> None:
    """Compare what the rules say with what the server does: model by model, and with --ask request by request."""
    from fuzz.compare import compare
    from fuzz.generate import make_world

    done, bad = 0, 0
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as temporary:
        while done < repositories:
            count = min(per_start, repositories - done)
            began = time.monotonic()
            world = make_world(seed, repositories=count, pool=pool, models=models)
            outcome = compare(world, (keep or Path(temporary)) / f"seed-{seed}")
            for one in outcome.disagreements:
                print(one)
            print(
                f"seed {seed}: {outcome.repositories} repositories, {outcome.models} models, {outcome.loading} load, "
                f"{len(outcome.disagreements)} disagreements, {time.monotonic() - began:.0f} s",
                flush=True,
            )
            if ask:
                from fuzz.requests import ask as ask_world

                answers += ask_world(world, (keep or Path(temporary)) / f"asked-{seed}", seed, ask)
            done, bad, seed = done + count, bad + len(outcome.disagreements), seed + 1
    print(f"{done} repositories, {bad} disagreements")
    if ask:
        bad += _tell(answers)
    raise typer.Exit(1 if bad else 0)


def _tell(answers: list[Answer]) -> int:
    """Print what the requests gave; how many failed though nothing foretold it."""
    untold = [one for one in answers if one.words and not one.is_foretold]
    for one in untold:
        print(f"{one.model}\n  server: {one.words}\n  rules:  nothing foretold it")
    failed = sum(bool(one.words) for one in answers)
    print(f"{len(answers)} requests, {failed} failed, {len(untold)} of them not foretold")
    for code in sorted({code for one in answers for code in one.told}):
        told = [one for one in answers if code in one.told]
        print(f"  {code}: {sum(bool(one.words) for one in told)} of {len(told)} requests failed where it was said")
    return len(untold)


if __name__ == "__main__":
    app()
