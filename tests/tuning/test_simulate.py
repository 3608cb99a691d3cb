"""The simulation against queues whose answers are known, and what it promises: the same seed, the same outcome."""

from __future__ import annotations

import math
import random

import pytest

from tuning.arrivals import poisson
from tuning.network import Network, Station, Step
from tuning.settings import Serving
from tuning.simulate import simulate, simulate_closed
from tuning.times import ServiceTimes, spell_of


def station(seconds: dict[int, tuple[float, ...]], cores: float = 1.0, **serving: object) -> Station:
    return Station(serving=Serving(**serving), times=ServiceTimes(seconds=seconds, cores=cores))  # type: ignore[arg-type]


def alone(one: Station, **more: object) -> Network:
    return Network(stations={"m": one}, steps=(Step(model="m"),), **more)  # type: ignore[arg-type]


def mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)


def test_a_single_queue_waits_as_long_as_theory_says() -> None:
    """M/D/1: with load r a request waits r S / (2 (1 - r)) on average."""
    outcome = simulate(alone(station({1: (0.01,)})), poisson(80, 250, 1))
    assert mean(outcome.latencies_s) == pytest.approx(0.01 + 0.8 * 0.01 / (2 * 0.2), rel=0.07)


def test_slow_moments_that_come_together_make_longer_queues_than_the_same_one_by_one() -> None:
    seconds, arrivals = {1: (0.02,) * 9 + (0.08,)}, poisson(20, 1000, 3)
    apart, together = (
        simulate(alone(Station(serving=Serving(), times=ServiceTimes(seconds=seconds, spell_s=spell_s))), arrivals)
        for spell_s in (0.0, 1.0)
    )
    assert together.took_s["m"][1] == pytest.approx(apart.took_s["m"][1], rel=0.15)
    assert together.latency_s(0.95) > 1.3 * apart.latency_s(0.95)


def test_a_spell_is_found_in_what_was_measured() -> None:
    draw, share, measured = random.Random(5), 0.5, []
    for number in range(2000):
        if draw.random() >= math.exp(-0.1 / 0.4):
            share = draw.random()
        rows = number % 2 + 1
        measured.append((0.1 * number, rows, rows * (1 + share)))
    assert spell_of(measured) == pytest.approx(0.4, rel=0.2)
    assert spell_of([(at, rows, draw.random()) for at, rows, _ in measured]) == 0
    assert spell_of([(at, rows, 1.0) for at, rows, _ in measured]) == 0


def test_requests_that_need_no_processor_do_not_wait_for_each_other() -> None:
    outcome = simulate(alone(station({1: (0.5,)}, cores=0.0, instances=4)), [0.0, 0.0, 0.0, 0.0])
    assert outcome.latencies_s == pytest.approx((0.5,) * 4)


def test_instances_on_too_few_cores_slow_each_other_down() -> None:
    shared = alone(station({1: (0.1,)}, cores=2.0, instances=2), capacity={"cpu": 2.0})
    assert simulate(shared, [0.0, 0.0]).latencies_s == pytest.approx((0.2, 0.2))
    apart = alone(station({1: (0.1,)}, cores=1.0, instances=2), capacity={"cpu": 2.0})
    assert simulate(apart, [0.0, 0.0]).latencies_s == pytest.approx((0.1, 0.1))


def test_a_step_waits_for_all_that_it_reads_and_slow_ones_run_side_by_side() -> None:
    network = Network(
        stations={name: station({1: (seconds,)}) for name, seconds in (("a", 0.1), ("b", 0.2), ("c", 0.05))},
        steps=(Step(model="a"), Step(model="b"), Step(model="c", after=(0, 1))),
    )
    assert simulate(network, [0.0]).latencies_s == pytest.approx((0.25,))


def test_callers_who_wait_get_what_largest_batches_give() -> None:
    batching = station({1: (0.01,), 8: (0.024,)}, max_batch_size=8, dynamic=True, max_queue_delay_s=0.005)
    outcome = simulate_closed(alone(batching), callers=16, requests=2000)
    assert outcome.throughput == pytest.approx(8 / 0.024, rel=0.02)
    assert outcome.mean_batch("m") == pytest.approx(8, rel=0.02)


def test_every_request_is_answered_or_refused_exactly_once() -> None:
    small = alone(station({1: (0.05,)}, max_batch_size=1, dynamic=True, max_queue_size=3))
    outcome = simulate(small, poisson(100, 5, 2))
    assert outcome.refused > 0
    assert outcome.refused + len(outcome.latencies_s) == outcome.arrivals


def test_one_seed_gives_one_outcome_and_another_another() -> None:
    spread = alone(station({1: (0.01, 0.02, 0.03)}))
    arrivals = poisson(30, 10, 3)
    assert simulate(spread, arrivals, seed=5) == simulate(spread, arrivals, seed=5)
    assert simulate(spread, arrivals, seed=5) != simulate(spread, arrivals, seed=6)


def test_times_between_measured_sizes_are_interpolated_and_continued_beyond() -> None:
    times = ServiceTimes(seconds={1: (0.010,), 4: (0.016,), 8: (0.020,)})
    assert [round(times.mean(rows), 6) for rows in (1, 2, 4, 6, 8, 16)] == [0.010, 0.012, 0.016, 0.018, 0.020, 0.028]
    with pytest.raises(ValueError, match="at least one"):
        ServiceTimes(seconds={})
