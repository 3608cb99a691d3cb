"""What is proposed, without a server: the promise is kept, the simple wins, and what was measured reads back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tuning.errors import TuningError
from tuning.fleet import read_assumptions
from tuning.measured import network_from, read_measured, servers_row
from tuning.modelled import has_single_rows, turned
from tuning.network import Network, Station, Step, longest_way_s, steps_of
from tuning.search import highest_rate, keeps, propose
from tuning.settings import Serving, config_parts, config_with, serving_of
from tuning.times import ServiceTimes

BATCHES = ServiceTimes(seconds={1: (0.010,), 8: (0.024,)})
ENSEMBLE: dict[str, Any] = {
    "name": "detect",
    "input": [{"name": "IMAGE", "dims": ["-1"]}],
    "ensemble_scheduling": {
        "step": [
            {"model_name": "pre", "input_map": {"IMAGE": "IMAGE"}, "output_map": {"PIXELS": "pixels"}},
            {"model_name": "net", "input_map": {"images": "pixels"}, "output_map": {"out": "BOXES"}},
        ]
    },
}
PIXELS = {"name": "PIXELS", "dims": ["3", "416", "416"]}
CONFIGS: dict[str, dict[str, Any]] = {
    "pre": {"output": [PIXELS]},
    "net": {
        "max_batch_size": 8,
        "input": [{"name": "images", "dims": [3, 416, 416]}],
        "output": [{"name": "out", "dims": [1]}],
    },
}


def network(**serving: Any) -> Network:
    told = {"max_batch_size": 8, "dynamic": True, **serving}
    station = Station(serving=Serving(**told), times=BATCHES)
    return Network(stations={"net": station}, steps=(Step(model="net"),))


def test_the_highest_rate_keeps_the_promise_and_a_higher_one_does_not() -> None:
    served = network(max_queue_delay_s=0.005)
    rate = highest_rate(served, 0.1)
    assert keeps(served, rate, 0.1)
    assert not keeps(served, 1.5 * rate, 0.1)


def test_no_rate_keeps_a_promise_shorter_than_one_execution() -> None:
    assert highest_rate(network(), 0.009) == 0.0


def test_a_window_that_breaks_the_promise_is_closed() -> None:
    served = network(max_queue_delay_s=0.2)
    turnable = turned(served.stations["net"].serving, {1: BATCHES}, True, (1, 2, 4, 8), 2)
    proposal = propose(served, {"net": turnable}, 0.1)
    assert highest_rate(served, 0.1) == 0.0, "who comes alone waits for the whole window"
    assert proposal.servings["net"].max_queue_delay_s < 0.05
    assert proposal.per_s > 100


def test_what_cannot_be_bettered_stays() -> None:
    served = network(max_batch_size=8)
    turnable = turned(served.stations["net"].serving, {0: BATCHES}, True, (8,), 1)
    assert propose(served, {"net": turnable}, 0.1).servings == {}


def test_steps_wait_for_the_steps_they_read_from() -> None:
    assert steps_of(ENSEMBLE) == (Step(model="pre"), Step(model="net", after=(0,)))


def test_a_request_takes_as_long_as_the_longest_way_through_its_steps() -> None:
    steps = (Step(model="ear"), Step(model="eye"), Step(model="net", after=(1,)), Step(model="llm", after=(0, 2)))
    took_s = {"ear": 5.0, "eye": 1.0, "net": 2.0, "llm": 4.0}
    assert longest_way_s(steps, took_s) == 9.0
    assert longest_way_s(steps, {**took_s, "net": 7.0}) == 12.0
    assert longest_way_s(steps, {"eye": 1.0, "net": 2.0}) == 3.0, "the others did not run"
    assert longest_way_s(steps_of({"name": "alone"}), {"alone": 2.0}) == 2.0


def test_only_where_one_row_comes_may_the_largest_batch_be_cut() -> None:
    assert has_single_rows(ENSEMBLE, CONFIGS, "net")
    many = {**CONFIGS, "pre": {"output": [{**PIXELS, "dims": ["-1", "3", "416", "416"]}]}}
    assert not has_single_rows(ENSEMBLE, many, "net")


def test_settings_are_read_from_a_config_and_written_back_as_little_as_possible() -> None:
    config = {
        "max_batch_size": 8,
        "dynamic_batching": {
            "max_queue_delay_microseconds": "5000",
            "preferred_batch_size": [8],
            "preserve_ordering": True,
        },
        "instance_group": [{"name": "net_0", "kind": "KIND_CPU", "count": 1, "gpus": []}],
    }
    now = serving_of(config)
    assert now == Serving(max_batch_size=8, dynamic=True, max_queue_delay_s=0.005)
    assert config_parts(now, config) == {}
    wanted = Serving(max_batch_size=4, dynamic=True, max_queue_delay_s=0.002, instances=2, threads=1)
    parts = config_parts(wanted, config)
    assert parts["instance_group"] == [{"kind": "KIND_CPU", "count": 2}]
    assert serving_of(config_with(config, parts)) == wanted
    assert config_with(config, parts)["dynamic_batching"]["preserve_ordering"] is True


def measured_file(folder: Path, **more: Any) -> Path:
    serving = {"max_batch_size": 8, "dynamic": True, "delay_us": 2000, "preferred": [], "instances": 1, "threads": 1}
    told = {
        "pipeline": "detect",
        "promise_ms": 100,
        "cores": 2,
        "travel_ms": 1.0,
        "handling_ms": 0.2,
        "steps": [{"model": "net", "after": []}],
        "models": {"net": {"serving": serving, "times": BATCHES.as_json()}},
        **more,
    }
    (folder / "measured.json").write_text(json.dumps(told))
    return folder / "measured.json"


def test_servers_like_the_measured_one_are_counted(tmp_path: Path) -> None:
    found = read_measured(measured_file(tmp_path))
    assert found.network == network_from(json.loads((tmp_path / "measured.json").read_text()))
    assert found.per_s == pytest.approx(highest_rate(found.network, 0.1))
    few, many = (servers_row(users, found, read_assumptions(), 0.1) for users in (100, 10_000_000))
    assert few["servers"] == "2"
    assert int(many["servers"]) > 10


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(TuningError, match="the JSON of `tritonkit tune` is needed"):
        read_measured(tmp_path / "other.json")
    with pytest.raises(TuningError):
        read_measured(measured_file(tmp_path, cores="two"))
