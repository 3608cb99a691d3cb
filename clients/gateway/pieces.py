"""A long recording cut at quiet places, so that its transcript can be told while the rest is still being heard."""

from collections.abc import Iterator

import numpy as np

from clients.defaults import SAMPLE_RATE_HZ

LONGEST_S = 28  # a window of Whisper has 30
QUIET_S = 6  # the last seconds of a piece, in which the quietest moment is looked for
FRAME = SAMPLE_RATE_HZ // 20


def pieces(samples: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
    """(start in seconds, samples) of each piece; samples: float32 [n], mono, 16 kHz. None of it is lost or twice."""
    start = 0
    while len(samples) - start > LONGEST_S * SAMPLE_RATE_HZ:
        end = quietest(samples, start + (LONGEST_S - QUIET_S) * SAMPLE_RATE_HZ, start + LONGEST_S * SAMPLE_RATE_HZ)
        yield start / SAMPLE_RATE_HZ, samples[start:end]
        start = end
    yield start / SAMPLE_RATE_HZ, samples[start:]


def quietest(samples: np.ndarray, begin: int, end: int) -> int:
    """The middle of the quietest 50 ms between two places."""
    frames = samples[begin : begin + (end - begin) // FRAME * FRAME].reshape(-1, FRAME)
    return begin + int(np.argmin(np.square(frames, dtype=np.float64).mean(axis=1))) * FRAME + FRAME // 2
