"""When requests are sent."""

from pathlib import Path

import numpy as np
import pytest

from load import Fixed, LoadError, Poisson, Replay
from load.arrivals import arrival_times, read_trace


def test_fixed_arrivals_are_evenly_spaced() -> None:
    assert arrival_times(Fixed(per_s=4), 1.0, seed=0).tolist() == [0, 0.25, 0.5, 0.75]


def test_poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process() -> None:
    times = arrival_times(Poisson(per_s=100), 200.0, seed=7)
    gaps = np.diff(times)
    assert abs(len(times) / 200 - 100) < 3
    assert (gaps >= 0).all() and abs(gaps.std() / gaps.mean() - 1) < 0.03, "gaps of a Poisson process are exponential"
    counts = np.bincount(times.astype(int), minlength=200)
    assert 0.8 < counts.var() / counts.mean() < 1.25, "its counts vary as much as their mean"


def test_the_same_seed_gives_the_same_arrivals_and_another_one_others() -> None:
    first, again, other = (arrival_times(Poisson(per_s=50), 5.0, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first[:10], other[:10])


def test_a_trace_is_replayed_from_its_first_time_and_faster_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    file.write_text("# seconds\n1700000010.5\n\n1700000010.0  # the first\n1700000012.0\n")
    assert read_trace(file).times_s == (0, 0.5, 2.0)
    assert read_trace(file, speed=2).times_s == (0, 0.25, 1.0)
    assert arrival_times(Replay(times_s=(0, 0.5, 2.0)), 1.0, seed=0).tolist() == [0, 0.5]


@pytest.mark.parametrize(("text", "words"), [("1.0\nsoon\n", "line 2: 'soon'"), ("# nothing\n", "no arrival times")])
def test_a_trace_that_is_none_is_refused_by_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "trace.txt"
    file.write_text(text)
    with pytest.raises(LoadError, match=words):
        read_trace(file)


@pytest.mark.parametrize("per_s", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(per_s: float) -> None:
    with pytest.raises(LoadError, match="positive"):
        arrival_times(Poisson(per_s=per_s), 1.0, seed=0)
