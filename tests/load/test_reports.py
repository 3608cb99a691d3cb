"""What people and programs read of a load."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from load import Fixed, LoadError, Outcome, Percentiles, Record, Result
from load.chart import Axis
from load.report import load_page
from load.results import Generator
from load.statistics import ModelCounts, Spent
from load.summary import summary
from load.timeline import timeline
from load.words import duration, read_duration, read_shapes, read_share, share


def record(intended_s: float, latency_s: float, outcome: Outcome = Outcome.RIGHT, words: str = "") -> Record:
    ended_s = intended_s + latency_s
    token_s = (ended_s - 0.02, ended_s - 0.01) if outcome is Outcome.RIGHT else ()
    times = {"intended_s": intended_s, "sent_s": intended_s, "ended_s": ended_s, "first_s": ended_s - 0.03}
    return Record(item=0, outcome=outcome, words=words, token_s=token_s, **times)


def counts(requests: int, seconds: float, sizes: dict[int, int]) -> ModelCounts:
    spent = Spent(count=requests, seconds=seconds)
    batches = {size: Spent(count=count, seconds=0.1) for size, count in sizes.items()}
    executions = sum(sizes.values())
    return ModelCounts(
        requests=requests, executions=executions, failed=0, queue=spent, input=spent, infer=spent, output=spent,
        batches=batches,
    )  # fmt: skip


def result(records: tuple[Record, ...], ceiling_per_s: float | None = None) -> Result:
    return Result(
        names=("a < b.jpg",),
        arrivals=Fixed(per_s=10),
        seconds=10.0,
        sent=records,
        alone_s=(0.03,),
        is_compared=True,
        models={"yolo": counts(90, 9.0, {1: 10, 4: 20})},
        models_problem="",
        generator=Generator(cpu_share=0.1, late_s=Percentiles.of([0.0001]), ceiling_per_s=ceiling_per_s),
        began="2026-01-01T00:00:00+00:00",
    )


MIXED = tuple(
    record(number / 10, 0.05 + number / 1000, Outcome.FAILED if number % 10 == 9 else Outcome.RIGHT, words)
    for number, words in ((number, "INTERNAL: <broken>" if number % 10 == 9 else "") for number in range(100))
)


class Page(HTMLParser):
    """Collects what a page holds and what it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attrs}, "nothing from elsewhere"
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A mark in a picture."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_stands_alone_and_says_what_was_not_right() -> None:
    page = Page(load_page(result(MIXED), {"model": "detect"}))
    text = " ".join(page.words)
    assert "script" not in page.tags and page.tags.count("svg") == 4 and not page.open
    assert "10.0 %" in text and "failed: INTERNAL: <broken>" in text and "a < b.jpg" in text
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize("records", [(), MIXED[9:10], MIXED[:1]], ids=["none", "failed", "one"])
def test_a_page_can_be_made_of_hardly_anything(records: tuple[Record, ...]) -> None:
    assert "<h1>" in load_page(result(records), {"model": "detect"})


def test_json_holds_the_same_numbers_and_null_where_there_is_none() -> None:
    found = json.loads(json.dumps(summary(result(MIXED), {"model": "detect"}), allow_nan=False))
    assert found["requests"] == 100 and found["outcomes"]["failed"] == 10 and found["error_rate"] == pytest.approx(0.1)
    assert found["latency_s"]["p50"] == pytest.approx(0.099, abs=0.002)
    assert found["between_tokens_s"]["p50"] == pytest.approx(0.01)
    assert found["first_token_s"]["p50"] - found["first_part_s"]["p50"] == pytest.approx(0.01)
    assert found["models"]["yolo"]["mean_batch"] == 3 and found["models"]["yolo"]["queue_s"] == pytest.approx(0.1)
    assert sum(one["right"] + one["not_right"] for one in found["timeline"]) == 100
    nothing = summary(result(MIXED[9:10]), {})
    assert nothing["latency_s"]["p95"] is None and nothing["error_rate"] == 1


def test_percentiles_are_values_that_were_seen() -> None:
    found = Percentiles.of([value / 100 for value in range(100, 0, -1)])
    assert (found.p50, found.p90, found.p95, found.p99, found.worst) == (0.50, 0.90, 0.95, 0.99, 1.0)


def test_a_load_near_its_own_ceiling_is_warned_of() -> None:
    assert any("load generator itself" in words for words in result(MIXED, ceiling_per_s=10).warnings)
    assert not result(MIXED, ceiling_per_s=100).warnings


def test_every_request_is_in_the_timeline_once() -> None:
    moments = timeline(result(MIXED))
    assert sum(one.offered for one in moments) == sum(one.right + one.not_right for one in moments) == 100
    assert len(moments) <= 20 and moments[-1].end_s >= 10


@pytest.mark.parametrize(("low", "high", "is_log"), [(0, 7.3, False), (0.004, 3.1, True), (1.71, 1.72, False)])
def test_ticks_lie_on_their_axis_and_are_round(low: float, high: float, is_log: bool) -> None:
    axis = Axis(low=low, high=high, start=10, end=110, is_log=is_log)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 15
    assert all(10 <= axis.at(value) <= 110 and re.fullmatch(r"[0-9.e-]{1,6}", f"{value:g}") for value in ticks)


def test_durations_and_shares_are_read_and_written() -> None:
    assert [read_duration(text) for text in ("200ms", "1.5 s", "0.2s", "80us")] == [0.2, 1.5, 0.2, pytest.approx(8e-5)]
    assert [read_share(text) for text in ("1%", "0.01", "0%")] == [0.01, 0.01, 0]
    assert [duration(value) for value in (0.00012, 0.0123, 0.25, 1.5, float("inf"))] == [
        "0.12 ms", "12.3 ms", "250 ms", "1.50 s", "-"
    ]  # fmt: skip
    assert share(0.00001) == "< 0.1 %" and share(0.99999) == "99.999 %" and share(0) == "0.0 %"
    for wrong in ("soon", "5 min", "200", "0ms", "-1s", "nans", "1.2.3s"):
        with pytest.raises(LoadError, match="such as 200ms"):
            read_duration(wrong)
    for wrong in ("2", "many"):
        with pytest.raises(LoadError):
            read_share(wrong)


def test_shapes_are_read() -> None:
    assert read_shapes(["X:1,1024", "layer:0:8"]) == {"X": (1, 1024), "layer:0": (8,)}
    for wrong in ("X=1", "X:", ":8", "X:1,", "X:0", "X:-1", "X:1.5"):
        with pytest.raises(LoadError, match="NAME:DIMS is needed"):
            read_shapes([wrong])
