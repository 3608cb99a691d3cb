"""Predicted and real latencies of one server over a grid of loads, side by side.

    python benchmarks/batcher_grid.py gemm --seconds 10
    python benchmarks/batcher_grid.py timed yolo --only 5000us --json grid.json
    python benchmarks/batcher_grid.py gemm --realtime     as root, where other programs run

First each model's service times are measured, requests at once and nothing else going on. Then the server gets Poisson
arrivals under different windows, and the model of the batcher the very same arrivals; none of these loads was measured
before. The server's own statistics then tell at what pace its executions went under that load, for a machine that
shares its host is not always as fast as when it was measured; the last columns are a prediction at that pace: what the
model of the batcher itself is off by. A cell during which something else took more than a tenth of a core is repeated,
up to three times, and marked if it stayed so: such a comparison says nothing. With --realtime server and load go before
all other programs instead.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.batcher_models import write_models
from embedded import EmbeddedServer
from load.inputs import random_items, signature_at
from tuning.arrivals import poisson
from tuning.compare import Compared, compare
from tuning.measure import Measured, measure_batches
from tuning.network import Network, Station, Step
from tuning.served import Served, served
from tuning.settings import serving_of

CHECKOUT = Path(__file__).parents[1]
HEADING = (
    f"{'window, load':<24} {'sent':>8} {'p50, predicted, off':>19} {'p95, predicted, off':>19} per s batch, pred."
    " pace, p50, p95 at it"
)
QUIET = 0.1  # cores
NEAR = 0.15
TRIES = 3
WINDOWS: Mapping[str, Mapping[str, Any]] = {
    "0us": {"max_queue_delay_microseconds": 0},
    "5000us": {"max_queue_delay_microseconds": 5000},
    "20000us prefer 4": {"max_queue_delay_microseconds": 20000, "preferred_batch_size": [4]},
    "2 instances": {"max_queue_delay_microseconds": 5000},
}
# Of what the model can do in largest batches.
LOADS = (0.1, 0.3, 0.5, 0.7)
SIZES = {"gemm": (1, 2, 4, 8, 16), "timed": (1, 2, 4, 8), "yolo": (1, 2, 4, 8)}


def grid(model: str, at: Served, seconds: float, only: str) -> Iterator[Compared]:
    """Every cell of one model."""
    config = at.config(model)
    items = random_items(signature_at(f"grpc://{at.grpc}", model), shapes={}, count=4)
    measured = measure_batches(at, items[0], config, SIZES[model])
    times = measured.times[model]
    told = ", ".join(f"{rows}: {1000 * times.mean(rows):.1f} ms" for rows in SIZES[model])
    print(
        f"\n{model}: {told}; {times.cores:.2f} cores, as slow or fast for {times.spell_s:.2f} s; "
        f"{1000 * measured.travel_s:.2f} ms under way, {1000 * measured.handling_s:.2f} ms of a core per request",
        flush=True,
    )
    largest = max(SIZES[model])
    for name, window in WINDOWS.items():
        if only not in name:
            continue
        groups = [{**config["instance_group"][0], "count": 2 if "instances" in name else 1}]
        told = {**config, "dynamic_batching": window, "instance_group": groups}
        at.load(model, told)
        for share in LOADS:
            per_s = share * largest / times.mean(largest)
            yield cell(f"{name}, {share:.0%}", at, items, network_of(model, told, measured), model, per_s, seconds)


def cell(
    name: str, at: Served, items: Sequence[Any], network: Network, model: str, per_s: float, seconds: float
) -> Compared:
    """One load, again if the machine was busy; of all tries the one with the least of it."""
    tries: list[Compared] = []
    while len(tries) < TRIES and not any(is_undisturbed(one) for one in tries):
        tries.append(compare(name, at, items, network, model, poisson(per_s, seconds, seed=len(tries))))
    return min(tries, key=lambda one: one.others)


def is_undisturbed(one: Compared) -> bool:
    """Whether the cell says something."""
    return one.others <= QUIET or os.sched_getscheduler(0) == os.SCHED_RR


def network_of(model: str, config: Mapping[str, Any], measured: Measured, cores: float = 2.0) -> Network:
    """One model behind the server's endpoint."""
    return Network(
        stations={model: Station(serving=serving_of(config), times=measured.times[model])},
        steps=(Step(model=model),),
        capacity={"cpu": cores},
        before_s=measured.travel_s / 2,
        after_s=measured.travel_s / 2,
        handling_s=measured.handling_s,
    )


def line(one: Compared) -> str:
    """A row of the table."""
    speeds = " ".join(
        f"{1000 * real:6.1f} {1000 * predicted:6.1f} {off:+5.0%}"
        for real, predicted, off in list(zip(one.real, one.predicted, one.off, strict=True))[1:]
    )
    mark = "" if is_undisturbed(one) else f"  busy: {one.others:.2f} cores went elsewhere"
    batches = " ".join(f"{rows:5.2f}" for rows in one.batch)
    at_pace = f"{one.pace:4.2f} " + " ".join(f"{off:+5.0%}" for off in one.off_at_pace[1:])
    return f"{one.name:<24} {one.per_s:6.0f}/s {speeds} {one.off[0]:+5.0%} {batches} {at_pace}{mark}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=sorted(SIZES))
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--only", default="", help="windows whose name has this in it")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    parser.add_argument("--realtime", action="store_true", help="let nothing else on this machine run before these")
    told = parser.parse_args()
    if told.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    found: dict[str, list[Compared]] = {}
    for model in told.models:
        with tempfile.TemporaryDirectory() as folder:
            repository = CHECKOUT / "model_repository" if model == "yolo" else Path(folder, "repository")
            if model != "yolo":
                write_models(repository, Path(folder, "work"))
            with EmbeddedServer(repository, load=[model], cache=CHECKOUT / ".cache") as server:
                print(HEADING)
                for one in grid(model, served(server), told.seconds, told.only):
                    found.setdefault(model, []).append(one)
                    print(line(one), flush=True)
    quiet = [one for some in found.values() for one in some if is_undisturbed(one)]
    near = sum(one.worst <= NEAR for one in quiet)
    at_pace = sum(one.worst_at_pace <= NEAR for one in quiet)
    print(f"\n{near} of {len(quiet)} undisturbed cells within 15 % in all three; at the pace of the load {at_pace}")
    if told.json:
        values = {model: [{**asdict(one), "off": one.off} for one in some] for model, some in found.items()}
        told.json.write_text(json.dumps(values, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
