"""The page on scale shows what its commands print, and the sums behind it are those of its words."""

from __future__ import annotations

import json
import re
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from builder.__main__ import app
from tuning.day import Scaling, compared, requests_by_minute, scaled_day
from tuning.errors import TuningError
from tuning.fleet import capacity, changed, fleet, peak_per_s, read_assumptions, request_bytes

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
BLOCKS = re.findall(r"```console\n\$ tritonkit (.*)\n((?:.*\n)*?)```", PAGE.read_text(encoding="utf-8"))


def printed(arguments: str, checkout: Path) -> str:
    with chdir(checkout):
        result = CliRunner().invoke(app, arguments.split(), env={"COLUMNS": "110", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.stdout.splitlines()) + "\n"


@pytest.mark.parametrize(("arguments", "shown"), BLOCKS, ids=[one[0] for one in BLOCKS])
def test_every_figure_of_the_page_is_what_its_command_prints(arguments: str, shown: str, checkout: Path) -> None:
    assert printed(arguments, checkout) == shown


def test_the_page_has_the_tables_it_talks_about() -> None:
    assert len(BLOCKS) == 4
    assert "network" in BLOCKS[2][1] and "KV cache" in BLOCKS[3][1]


def test_one_gpu_answers_what_its_lowest_bound_allows() -> None:
    one = capacity(read_assumptions(), "L40S")
    assert one.per_s == min(one.bounds.values())
    assert one.bounds[one.bound] == one.per_s


def test_more_of_anything_never_needs_fewer_gpus() -> None:
    assumed = read_assumptions()
    plain = capacity(assumed, "H100")
    for told in ({"answer_tokens": 400}, {"prompt_tokens": 2000}, {"image_bytes": 50_000_000}, {"audio_seconds": 60}):
        assert capacity(changed(assumed, {"request": told}, "test"), "H100").per_s <= plain.per_s
    sizes = [fleet(users, assumed, plain).gpus for users in (1, 500, 50_000, 1_000_000)]
    assert sizes == sorted(sizes) and sizes[0] == 2


def test_requests_are_those_of_the_busiest_hour() -> None:
    assumed = read_assumptions()
    assert peak_per_s(3000, assumed) == pytest.approx(3000 * 0.10 * 12 / 3600)
    assert request_bytes(assumed) == pytest.approx(0.5 * 15 * 64000 + 0.3 * 1_500_000)


def test_a_day_that_follows_its_load_costs_less_and_answers_as_much() -> None:
    assumed = read_assumptions()
    fixed, following = compared(assumed, 100.0, 4.0, 27)
    assert following.gpu_hours < 0.85 * fixed.gpu_hours
    assert following.late_share < 0.001
    assert compared(assumed, 100.0, 4.0, 27)[1].gpu_hours == following.gpu_hours, "one seed, one day"


def test_gpus_that_come_late_leave_requests_waiting() -> None:
    asked = np.concatenate([np.full(700, 60), np.full(740, 6000)])
    slow = scaled_day(asked, 1.0, 1, Scaling(start_minutes=30))
    fast = scaled_day(asked, 1.0, 1, Scaling(start_minutes=1))
    assert slow.short_minutes > fast.short_minutes > 0


def test_the_curve_of_the_day_is_followed() -> None:
    asked = requests_by_minute(10.0, read_assumptions()["people"]["by_hour"])
    assert len(asked) == 1440
    assert asked[20 * 60] == pytest.approx(600, rel=0.2)
    assert asked[3 * 60] == pytest.approx(90, rel=0.4)


def test_an_assumption_that_nobody_asks_for_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "mine.json"
    wrong.write_text(json.dumps({"request": {"answer_token": 3}}))
    with pytest.raises(TuningError, match="answer_token is no assumption"):
        read_assumptions(wrong)
    with pytest.raises(TuningError, match="one of L4, A10, L40S"):
        capacity(read_assumptions(), "L50S")


def test_a_gpu_without_room_for_one_answer_is_refused() -> None:
    with pytest.raises(TuningError, match="no room for the KV cache"):
        capacity(read_assumptions(), "L4")
