"""`python -m fuzz`: random repositories, our verdict against the real server's. Exit status 1 on a disagreement."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def main(
    seed: Annotated[int, typer.Option(help="the first seed; each start takes the next")] = 1,
    repositories: Annotated[int, typer.Option(help="how many repositories in all")] = 2000,
    per_start: Annotated[int, typer.Option(help="repositories of one server start")] = 500,
    pool: Annotated[int, typer.Option(help="models that the repositories of one start share")] = 24,
    models: Annotated[float, typer.Option(help="models of its own that a repository has on average")] = 0.6,
    keep: Annotated[Path | None, typer.Option(help="leave the repositories in this folder")] = None,
) -> None:
    """Compare what the rules say with what the server does, model by model."""
    from fuzz.compare import compare
    from fuzz.generate import make_world

    done, bad = 0, 0
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
            done, bad, seed = done + count, bad + len(outcome.disagreements), seed + 1
    print(f"{done} repositories, {bad} disagreements")
    raise typer.Exit(1 if bad else 0)


if __name__ == "__main__":
    app()
