"""Which parts of a recording become windows.

In: log-mel float32 [n_mels, frames]. Out: int32 [n, 2]: start frame, frames; 10 ms each.
"""

import numpy as np

WINDOW_FRAMES = 3000
MODES = ("exact", "fast")
_EARLIEST_CUT = 2000  # windows cost the same whether full or not, so fill them to two thirds at least
_QUIET_FRAMES = 30  # a pause between words or sentences, 0.3 s, counts; a gap inside a word doesn't
_AS_QUIET = 0.02  # of the scale on which log-mel spans 2: takes the last of equally quiet places


def plan_spans(mel: np.ndarray, mode: str) -> np.ndarray:
    """The windows known before decoding.

    Exact mode: the first one only; where the next begins is known when its text is. Fast mode: all, back to back,
    each at most 30 s, cut where it is quiet.
    """
    frames = mel.shape[1]
    if mode == "exact" or frames <= WINDOW_FRAMES:
        return np.array([[0, min(frames, WINDOW_FRAMES)]], np.int32)
    cuts = [0]
    loudness = _loudness(mel)
    while frames - cuts[-1] > WINDOW_FRAMES:
        cuts.append(_quiet_place(loudness, cuts[-1] + _EARLIEST_CUT, cuts[-1] + WINDOW_FRAMES))
    cuts.append(frames)
    return np.stack([cuts[:-1], np.diff(cuts)], axis=1).astype(np.int32)


def _loudness(mel: np.ndarray) -> np.ndarray:
    """How loud it is around every frame: float32 [frames]."""
    return np.convolve(mel.mean(axis=0), np.full(_QUIET_FRAMES, 1.0 / _QUIET_FRAMES, np.float32), mode="same")


def _quiet_place(loudness: np.ndarray, earliest: int, latest: int) -> int:
    """The last of the quietest frames in earliest..latest, both included."""
    candidates = loudness[earliest : latest + 1]
    return earliest + int(np.flatnonzero(candidates <= candidates.min() + _AS_QUIET)[-1])
