import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from whisper_spans import WINDOW_FRAMES, plan_spans


def mel_of(frames: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.5, 1.5, (4, frames)).astype(np.float32)


@given(st.integers(0, 20_000), st.integers(0, 3))
def test_fast_windows_lie_back_to_back_over_every_frame(frames: int, seed: int) -> None:
    """WHI-03."""
    spans = plan_spans(mel_of(frames, seed), "fast")
    assert spans.dtype == np.int32
    assert spans[0, 0] == 0
    np.testing.assert_array_equal(spans[1:, 0], spans[:-1].sum(axis=1))
    assert spans[-1].sum() == frames
    assert (spans[:, 1] <= WINDOW_FRAMES).all()
    assert (spans[:-1, 1] >= 2000).all()


def test_62_455_seconds_are_3_windows() -> None:
    """WHI-03."""
    assert len(plan_spans(mel_of(6245), "fast")) == 3


@pytest.mark.parametrize(("frames", "length"), [(0, 0), (1, 1), (3000, 3000), (9000, 3000)])
def test_exact_mode_plans_the_first_window_only(frames: int, length: int) -> None:
    np.testing.assert_array_equal(plan_spans(mel_of(frames), "exact"), [[0, length]])


def test_windows_end_in_pauses() -> None:
    mel = np.ones((4, 7000), np.float32)
    for middle in (2300, 2500, 4900):  # 0.4 s each; the one at 23 s is not as quiet
        mel[:, middle - 20 : middle + 20] = -0.4 if middle != 2300 else 0.3
    ends = plan_spans(mel, "fast").sum(axis=1)
    assert abs(ends[0] - 2500) <= 20
    assert abs(ends[1] - 4900) <= 20


def test_a_long_silence_is_left_to_the_window_before_it() -> None:
    mel = np.ones((4, 4000), np.float32)
    mel[:, 2100:2900] = -0.5
    (end, _) = plan_spans(mel, "fast").sum(axis=1)
    assert 2800 < end < 2900
