"""When Triton's batcher sends a batch, case by case, without a server."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tuning.batcher import Batcher
from tuning.settings import Serving


@dataclass(slots=True, eq=False)
class Ask:
    queued_s: float
    rows: int = 1
    priority: int = 0


def batching(**more: object) -> Serving:
    return Serving(**{"max_batch_size": 8, "dynamic": True, **more})  # type: ignore[arg-type]


def put(batcher: Batcher, *times_s: float, rows: int = 1, priority: int = 0) -> list[bool]:
    return [batcher.put(Ask(at, rows, priority), at) for at in times_s]


def taken(batcher: Batcher, now_s: float) -> int:
    return sum(one.rows for one in batcher.take(now_s))


def test_without_batching_each_request_runs_alone() -> None:
    batcher = Batcher(Serving())
    put(batcher, 0.0, 0.0, 0.0)
    assert [taken(batcher, 0.1) for _ in range(4)] == [1, 1, 1, 0]


def test_without_a_delay_an_instance_takes_what_is_there() -> None:
    batcher = Batcher(batching())
    put(batcher, 0.0)
    assert taken(batcher, 0.0) == 1, "nobody waits while an instance is free"
    put(batcher, *[0.1] * 5)
    assert taken(batcher, 0.2) == 5


def test_without_a_delay_batches_grow_to_the_largest_and_no_further() -> None:
    batcher = Batcher(batching())
    put(batcher, *[0.0] * 19)
    assert [taken(batcher, 0.1) for _ in range(4)] == [8, 8, 3, 0]


def test_the_delay_counts_from_the_oldest_request() -> None:
    batcher = Batcher(batching(max_queue_delay_s=0.01))
    put(batcher, 0.0, 0.004, 0.009)
    assert batcher.wakes_at == pytest.approx(0.01)
    assert taken(batcher, 0.0099) == 0
    batcher.look(0.01)
    assert taken(batcher, 0.01) == 3


def test_the_largest_batch_leaves_before_the_delay_is_over() -> None:
    batcher = Batcher(batching(max_queue_delay_s=1.0))
    put(batcher, *[0.0] * 8)
    assert taken(batcher, 0.0) == 8


def test_a_preferred_size_leaves_at_once_and_the_next_request_waits() -> None:
    batcher = Batcher(batching(max_queue_delay_s=1.0, preferred=(4,)))
    put(batcher, 0.0, 0.1, 0.2, 0.3)
    assert taken(batcher, 0.3) == 4
    put(batcher, 0.4)
    assert taken(batcher, 0.5) == 0


def test_no_batch_has_more_rows_than_the_model_takes() -> None:
    batcher = Batcher(batching())
    put(batcher, 0.0, 0.0, 0.0, rows=3)
    assert [taken(batcher, 0.0) for _ in range(2)] == [6, 3]


def test_two_batches_for_each_instance_leave_ahead_the_rest_waits_in_the_queue() -> None:
    batcher = Batcher(batching(instances=2))
    put(batcher, *[0.0] * 50)
    assert len(batcher) == 50 - 3 * 8 - 1, "the fourth has left with one request, and may grow when there is room again"
    assert taken(batcher, 0.1) == 8
    assert len(batcher) == 50 - 5 * 8


def test_small_batches_that_waited_too_long_are_merged_when_taken() -> None:
    batcher = Batcher(batching(max_queue_delay_s=0.01, preferred=(2,)))
    put(batcher, 0.0, 0.0, 0.0, 0.0)
    batcher.look(0.02)
    assert taken(batcher, 0.1) == 4, "the last one had left by itself"


def test_a_full_queue_refuses() -> None:
    batcher = Batcher(batching(max_queue_size=2))
    assert taken(batcher, 0.0) == 0
    put(batcher, 0.0)
    assert taken(batcher, 0.0) == 1, "the instance is busy now"
    assert put(batcher, 0.1, 0.1, 0.1) == [True, True, False]


def test_the_first_level_is_served_first_and_an_unknown_one_is_the_default() -> None:
    batcher = Batcher(batching(max_batch_size=1, priority_levels=2, default_priority=2, max_queue_size=10))
    for priority in (0, 2, 1, 7):
        batcher.put(Ask(0.0, priority=priority), 0.0)
    order = []
    for at in range(4):
        order += [one.priority for one in batcher.take(float(at))]
        batcher.release(float(at))
    assert order == [0, 1, 2, 7], "the first one had left before the others came"
