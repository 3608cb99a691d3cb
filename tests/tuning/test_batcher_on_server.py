"""The model of the batcher against the real server, on loads that were not measured; the long form is
benchmarks/batcher_grid.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.batcher_grid import network_of
from benchmarks.batcher_models import write_models
from embedded import EmbeddedServer
from load.inputs import random_items, signature_at
from tuning.arrivals import poisson
from tuning.compare import Compared, compare
from tuning.measure import Measured, measure_batches
from tuning.served import Served, served
from tuning.settings import Serving
from tuning.simulate import simulate

pytestmark = [pytest.mark.server, pytest.mark.timing]
MODEL = "timed"
# Long enough that whatever else this machine does weighs little.
TIMES = {"base_us": {"string_value": "60000"}, "each_us": {"string_value": "10000"}}
NEAR = 0.15
TRIES = 3
SECONDS = 2.5


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("batcher")
    write_models(folder / "repository", folder / "work", models=[MODEL])
    with EmbeddedServer(folder / "repository", load=[MODEL], cache=checkout / ".cache") as server:
        yield served(server)


@pytest.fixture(scope="module")
def items(at: Served) -> Any:
    return random_items(signature_at(f"grpc://{at.grpc}", MODEL), shapes={}, count=2)


@pytest.fixture(scope="module")
def config(at: Served) -> dict[str, Any]:
    return {**at.config(MODEL), "parameters": TIMES}


@pytest.fixture(scope="module")
def measured(at: Served, items: Any, config: dict[str, Any]) -> Measured:
    return measure_batches(at, items[0], config, (1, 4, 8), repeats=5)


def test_an_execution_takes_what_the_model_waits(measured: Measured) -> None:
    times = measured.times[MODEL]
    for rows in (1, 2, 4, 8):
        assert times.mean(rows) == pytest.approx(0.060 + rows * 0.010, rel=0.25)
    assert times.cores < 0.5, "it waits, as for a GPU"


@pytest.mark.parametrize(
    ("window", "per_s"),
    [
        ({"max_queue_delay_microseconds": 0}, 24),
        ({"max_queue_delay_microseconds": 150000, "preferred_batch_size": [4]}, 28),
    ],
)
def test_latencies_that_were_not_measured_are_predicted(
    at: Served, items: Any, config: dict[str, Any], measured: Measured, window: dict[str, Any], per_s: float
) -> None:
    told = {**config, "dynamic_batching": window}
    at.load(MODEL, told)
    network = network_of(MODEL, told, measured)
    tries: list[Compared] = []
    while len(tries) < TRIES and not any(one.worst <= NEAR for one in tries):  # whatever else runs here now and then
        tries.append(compare("", at, items, network, MODEL, poisson(per_s, SECONDS, seed=len(tries))))
    assert min(one.worst for one in tries) <= NEAR, tries
    assert all(one.wrong == 0 for one in tries)
    best = min(tries, key=lambda one: one.worst)
    # The same numbers refute another model: one request after the other, or no window.
    apart = replace(network.stations[MODEL], serving=Serving())
    alone = simulate(replace(network, stations={MODEL: apart}), poisson(per_s, SECONDS, seed=tries.index(best)))
    off = [abs(alone.latency_s(share) / real - 1) for share, real in zip((0.5, 0.95), best.real[1:], strict=True)]
    assert max(off) > NEAR
