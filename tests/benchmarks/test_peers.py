"""The benchmark against peers: its driver, its sums and its page. No peer is started."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.peers.driver import Answer, Tally, closed_loop, is_equal
from benchmarks.peers.page import DOCUMENT, page
from benchmarks.peers.results import add, quantile, read, round_of, rows_of
from benchmarks.peers.scenarios import SCENARIOS


@dataclass(frozen=True)
class Sum:
    expected: int
    numbers: tuple[int, int]


SUMS = (Sum(3, (1, 2)), Sum(7, (3, 4)))


def loaded(call: object, callers: int = 2, seconds: float = 0.05) -> Tally:
    return asyncio.run(closed_loop(call, SUMS, callers=callers, seconds=seconds))  # type: ignore[arg-type]


async def added(case: Sum) -> Answer:
    await asyncio.sleep(0.001)
    return Answer(value=sum(case.numbers), first_s=0.0005)


def test_right_answers_are_counted_with_their_times() -> None:
    tally = loaded(added)
    assert len(tally.latency_s) > 4 and len(tally.first_s) == len(tally.latency_s)
    assert min(tally.latency_s) >= 0.001 and tally.seconds >= 0.05
    assert (tally.wrong, tally.failed, tally.problem) == (0, 0, "")


def test_a_fast_wrong_answer_is_an_error_and_no_answer() -> None:
    async def always_three(case: Sum) -> Answer:
        await asyncio.sleep(0.001)
        return Answer(value=3)

    tally = loaded(always_three)
    assert tally.wrong > 0 and tally.problem == "3 instead of 7"
    made = round_of("x", 2, tally, cpu_s=1.0, client_cpu_s=0.1, memory_bytes=1)
    assert made["answered"] == len(tally.latency_s) > 0
    (row,) = rows_of([made])
    assert row.errors == tally.wrong and row.asked == tally.wrong + len(tally.latency_s)
    assert row.answers_per_s == pytest.approx(len(tally.latency_s) / made["seconds"])


def test_a_contender_that_refuses_has_only_failures() -> None:
    async def refuse(case: Sum) -> Answer:
        raise ConnectionError("no")

    tally = loaded(refuse)
    assert tally.failed > 0 and not tally.latency_s and tally.problem == "ConnectionError: no"


def test_as_many_are_asked_at_once_as_there_are_callers() -> None:
    at_once: list[int] = [0]
    most = 0

    async def busy(case: Sum) -> Answer:
        nonlocal most
        at_once[0] += 1
        most = max(most, at_once[0])
        await asyncio.sleep(0.002)
        at_once[0] -= 1
        return Answer(value=case.expected)

    loaded(busy, callers=5)
    assert most == 5


@pytest.mark.parametrize(
    ("found", "is_same"),
    [
        ({"text": "a cup", "box": [100.05, 2.0]}, True),  # rounding of another batch
        ({"text": "a cup", "box": [101.0, 2.0]}, False),
        ({"text": "a Cup", "box": [100.0, 2.0]}, False),
        ({"text": "a cup", "box": [100.0]}, False),
        ({"text": "a cup"}, False),
        ({"text": "a cup", "box": None}, False),
    ],
)
def test_answers_are_equal_in_every_word_and_in_numbers_but_for_rounding(found: object, is_same: bool) -> None:
    assert is_equal({"text": "a cup", "box": [100.0, 2.0]}, found) == is_same


def test_quantiles_are_values_that_were_measured() -> None:
    values = [float(one) for one in range(1, 101)]
    assert [quantile(values, share) for share in (50, 95, 99)] == [50.0, 95.0, 99.0]
    assert quantile([2.0], 99) == 2.0 and quantile([], 50) is None


def test_runs_add_their_rounds_and_rows_are_medians(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    for seconds in (1.0, 2.0, 4.0):
        tally = Tally(seconds=seconds, latency_s=[seconds / 4] * 4)
        made = round_of("x", 1, tally, cpu_s=seconds, client_cpu_s=0.0, memory_bytes=int(seconds))
        add("detect", [made], {"cores": 2}, anew=False, file=file)
    (row,) = rows_of(read(file)["scenarios"]["detect"])
    assert (row.rounds, row.answers_per_s, row.p50_s, row.cpu_s_per_answer, row.memory_bytes) == (3, 2.0, 0.5, 0.5, 4)
    add("detect", [made], {"cores": 2}, anew=True, file=file)
    assert rows_of(read(file)["scenarios"]["detect"])[0].rounds == 1


def test_a_round_that_others_disturbed_is_left_out_where_there_is_a_quiet_one() -> None:
    tally = Tally(seconds=1.0, latency_s=[0.5] * 2)
    disturbed = round_of("x", 1, tally, cpu_s=0.5, client_cpu_s=0.0, memory_bytes=1, others_share=0.8)
    quiet = round_of("x", 1, Tally(seconds=1.0, latency_s=[0.1] * 9), cpu_s=0.9, client_cpu_s=0, memory_bytes=1)
    (row,) = rows_of([disturbed, quiet])
    assert (row.rounds, row.answers_per_s) == (1, 9.0)
    assert rows_of([disturbed])[0].answers_per_s == 2.0


def test_the_page_says_what_was_measured_and_nothing_else() -> None:
    known = read()
    assert DOCUMENT.read_text(encoding="utf-8") == page(known), "run: python -m benchmarks.peers page"
    assert known["scenarios"] and known["scenarios"].keys() <= SCENARIOS.keys()
    for name, rounds in known["scenarios"].items():
        assert {one["contender"] for one in rounds} <= set(SCENARIOS[name].contenders), name
        assert all(f"**{row.callers} caller" in page(known) for row in rows_of(rounds)), name
