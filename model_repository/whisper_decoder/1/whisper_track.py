"""Where the windows of a recording begin, and which segments they give: openai-whisper's sequential windows.

In: the tokens of a window. Out: the next window, until the track ends.
Exact mode is one track over the whole recording, every window prompted with the text before it.
Fast mode is one track for each planned span, without prompts, as the package does with `clip_timestamps` and
`condition_on_previous_text=False`; but what is left of a span behind its last segment is asked again only if it is
longer than a second: spans end in pauses, and Whisper makes up words for the bits of silence in them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from whisper_memory import Array, library_of
from whisper_tokens import Tokens, Vocabulary

WINDOW_FRAMES = 3000
FRAMES_PER_SECOND = 100
FRAMES_PER_TIMESTAMP = 2
NO_SPEECH_THRESHOLD = 0.6
LOGPROB_THRESHOLD = -1.0
SHORTEST_REST_FRAMES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """At most 30 s to decode, and the tokens of the text before it."""

    start: int
    frames: int
    before: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What the decoder said in a window, end of text left out."""

    tokens: tuple[int, ...]
    avg_logprob: float
    no_speech_prob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of text; start and end in seconds of the recording."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]
    avg_logprob: float
    no_speech_prob: float

    def as_json(self) -> dict[str, Any]:
        return {
            "start": round(self.start, 2),
            "end": round(self.end, 2),
            "text": self.text,
            "tokens": list(self.tokens),
            "avg_logprob": round(self.avg_logprob, 6),
            "no_speech_prob": round(self.no_speech_prob, 6),
        }


class Track:
    """The windows of one stretch of a recording, one after the other.

    Args:
        start: First frame.
        end: Frame behind the last.
        is_prompted: Whether each window is told the text before it.
    """

    def __init__(self, tokens: Tokens, vocabulary: Vocabulary, *, start: int, end: int, is_prompted: bool) -> None:
        self._tokens, self._vocabulary = tokens, vocabulary
        self._seek, self._end = start, end
        self._is_prompted = is_prompted
        self.segments: list[Segment] = []

    @property
    def is_done(self) -> bool:
        rest = self._end - self._seek
        return rest <= (SHORTEST_REST_FRAMES if self.segments and not self._is_prompted else 0)

    def next_window(self) -> Window:
        """The window to decode now."""
        said = [token for segment in self.segments for token in segment.tokens] if self._is_prompted else []
        return Window(start=self._seek, frames=min(WINDOW_FRAMES, self._end - self._seek), before=tuple(said))

    def take(self, window: Window, decoded: Decoded) -> None:
        """Adds the segments of a window and moves on: to its end, or to its last timestamp where more was begun."""
        if decoded.no_speech_prob > NO_SPEECH_THRESHOLD and decoded.avg_logprob <= LOGPROB_THRESHOLD:
            self._seek += window.frames
            return
        begin = self._tokens.timestamp_begin
        is_stamp = [token >= begin for token in decoded.tokens]
        ends_in_text_then_stamp = is_stamp[-2:] == [False, True]
        cuts = [i for i in range(1, len(is_stamp)) if is_stamp[i - 1] and is_stamp[i]]
        if not cuts:
            self._add(window, decoded, decoded.tokens, 0, self._length(window, decoded.tokens))
            self._seek += window.frames
            return
        if ends_in_text_then_stamp:
            cuts.append(len(decoded.tokens))
        for first, last in zip([0, *cuts], cuts, strict=False):
            tokens = decoded.tokens[first:last]
            self._add(window, decoded, tokens, _seconds(tokens[0] - begin), _seconds(tokens[-1] - begin))
        if ends_in_text_then_stamp:
            self._seek += window.frames
        else:
            self._seek += (decoded.tokens[cuts[-1] - 1] - begin) * FRAMES_PER_TIMESTAMP

    def _length(self, window: Window, tokens: Sequence[int]) -> float:
        """Seconds until the last timestamp, if it says anything, else of the whole window."""
        stamps = [token for token in tokens if token >= self._tokens.timestamp_begin]
        if stamps and stamps[-1] != self._tokens.timestamp_begin:
            return _seconds(stamps[-1] - self._tokens.timestamp_begin)
        return window.frames / FRAMES_PER_SECOND

    def _add(self, window: Window, decoded: Decoded, tokens: Sequence[int], start: float, end: float) -> None:
        """Adds a segment; one without length or text adds nothing to the transcript or to later prompts."""
        text = self._vocabulary.decode(token for token in tokens if token < self._tokens.eot)
        if start == end or not text.strip():
            return
        offset = window.start / FRAMES_PER_SECOND
        self.segments.append(
            Segment(
                start=offset + start,
                end=offset + end,
                text=text,
                tokens=tuple(tokens),
                avg_logprob=decoded.avg_logprob,
                no_speech_prob=decoded.no_speech_prob,
            )
        )


def cut(mel: Array, start: int, frames: int) -> Array:
    """A window of the recording as the encoder takes it, zeros behind a short one: float32 [n_mels, 3000]."""
    out = _filled(mel, 0.0)
    out[:, :frames] = mel[:, start : start + frames]
    return out


def cut_for_detection(mel: Array) -> Array:
    """The first 30 s with silence behind a short recording: float32 [n_mels, 3000].

    The package detects the language on these, not on the zero-padded first window. Silence has the smallest value that
    the normalisation leaves; only in the two frames at the very end, which overlap the last samples, is this a guess.
    """
    loudest = float(library_of(mel).amax(mel)) if mel.shape[1] else -1.5
    out = _filled(mel, max(loudest - 2.0, -1.5))
    out[:, : min(WINDOW_FRAMES, mel.shape[1])] = mel[:, :WINDOW_FRAMES]
    return out


def _filled(mel: Array, value: float) -> Array:
    """A window of one value, where the recording lies."""
    shape = (mel.shape[0], WINDOW_FRAMES)
    return np.full(shape, value, np.float32) if isinstance(mel, np.ndarray) else mel.new_full(shape, value)


def _seconds(timestamps: int) -> float:
    return timestamps * FRAMES_PER_TIMESTAMP / FRAMES_PER_SECOND
