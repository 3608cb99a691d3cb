"""One request: what it asks, what is done, what is left.

In: the request's arrays. Out: transcript, segments, language. Used by the decode loop's thread alone.
"""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from whisper_memory import Array, library_of
from whisper_tokens import InputError, Sizes, Tokens, Vocabulary
from whisper_track import WINDOW_FRAMES, Decoded, Segment, Track, Window, cut, cut_for_detection

MODES = ("exact", "fast")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a request says.

    Attributes:
        features: float32 [n, n_audio_ctx, n_audio_state], of the first n spans; numpy's, or torch's on a GPU.
        mel: float32 [n_mels, frames], the whole recording; likewise.
        spans: int [windows, 2], start frame and frames; numpy's.
        language: Code, or None for detection.
    """

    features: Array
    mel: Array
    spans: np.ndarray
    language: str | None
    task: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """An encoded window. Without track and window it is there for language detection only."""

    track: Track | None
    window: Window | None
    features: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Unencoded:
    """A window that the encoder has not seen."""

    track: Track | None
    window: Window | None


class Job:
    """The windows of one request on their way.

    Args:
        is_cancelled: Whether the client went away.
        finish: Called once, with this job and None, or with what went wrong.
        tell: Called with this job whenever it may have new segments; None: nobody wants them before the end.

    Attributes:
        ready: Windows that may join the batch.
        unencoded: Windows that must be encoded first.
        active: How many rows of the batch are this job's.
    """

    def __init__(
        self,
        ask: Ask,
        tokens: Tokens,
        vocabulary: Vocabulary,
        is_cancelled: Callable[[], bool],
        finish: Callable[["Job", Exception | None], None],
        tell: Callable[["Job"], None] | None = None,
    ) -> None:
        self._mel, self._vocabulary = ask.mel, vocabulary
        self.task, self.language = ask.task, ask.language
        self.is_cancelled = is_cancelled
        self._finish, self._tell, self._told = finish, tell, 0
        self._tracks = _tracks(ask, tokens, vocabulary)
        self._encoding: list[Unencoded] = []
        self._first = list(ask.features)
        self.ready: deque[Ready] = deque()
        self.unencoded: deque[Unencoded] = deque()
        self.active = 0
        self._begin(needs_own_window=ask.mel.shape[1] < (WINDOW_FRAMES if ask.mode == "exact" else 1))

    @property
    def is_encoding(self) -> bool:
        return bool(self._encoding)

    @property
    def is_done(self) -> bool:
        return self.language is not None and all(track.is_done for track in self._tracks)

    def finish(self, error: Exception | None) -> None:
        self._finish(self, error)

    def tell(self) -> None:
        """Lets whoever waits for them have the segments that are done."""
        if self._tell is not None:
            self._tell(self)

    def set_language(self, code: str) -> None:
        """Goes on with the other windows once the language is known."""
        self.language = code
        self._open(self._tracks[1 if self._first_is_open else 0 :])

    def take_unencoded(self, n: int) -> Array:
        """The next windows for the encoder: float32 [at most n, n_mels, 3000]."""
        self._encoding = [self.unencoded.popleft() for _ in range(min(n, len(self.unencoded)))]
        return library_of(self._mel).stack([self._cut(wanted.window) for wanted in self._encoding])

    def take_encoded(self, features: Array) -> None:
        """Features of the windows that were taken for the encoder."""
        for wanted, encoded in zip(self._encoding, features, strict=True):
            self.ready.append(Ready(track=wanted.track, window=wanted.window, features=encoded))
        self._encoding = []

    def take_decoded(self, ready: Ready, decoded: Decoded) -> None:
        """The words of a window; its track's next window is then to be encoded."""
        if ready.track is None or ready.window is None:
            raise ValueError("a window for language detection has no words")
        ready.track.take(ready.window, decoded)
        if not ready.track.is_done:
            self.unencoded.append(Unencoded(track=ready.track, window=ready.track.next_window()))

    def segments(self) -> list[Segment]:
        return [segment for track in self._tracks for segment in track.segments]

    def new_segments(self) -> list[Segment]:
        """The segments that this has not given before, in the order of the recording: none behind a gap."""
        done: list[Segment] = []
        for track in self._tracks:
            done += track.segments
            if not track.is_done:
                break
        new, self._told = done[self._told :], len(done)
        return new

    def transcript(self) -> str:
        return self.text_of(self.segments()).strip()

    def text_of(self, segments: list[Segment]) -> str:
        """What the segments say, as it follows on what was said before them."""
        return self._vocabulary.decode(token for segment in segments for token in segment.tokens)

    def segments_json(self) -> str:
        return json_of(self.segments())

    def _begin(self, *, needs_own_window: bool) -> None:
        """Opens all windows, or first only what decides the language."""
        self._first_is_open = False
        if self.language is not None:
            self._open(self._tracks)
        elif needs_own_window:
            self.unencoded.append(Unencoded(track=None, window=None))
        else:
            self._first_is_open = True
            self._open(self._tracks[:1])

    def _open(self, tracks: list[Track]) -> None:
        """Lets the first window of each track in; the features of the first few tracks came with the request."""
        for track in tracks:
            if track.is_done:
                continue
            window = track.next_window()
            at = self._tracks.index(track)
            if at < len(self._first):
                self.ready.append(Ready(track=track, window=window, features=self._first[at]))
            else:
                self.unencoded.append(Unencoded(track=track, window=window))

    def _cut(self, window: Window | None) -> Array:
        return cut_for_detection(self._mel) if window is None else cut(self._mel, window.start, window.frames)


def json_of(segments: list[Segment]) -> str:
    """The JSON of SEGMENTS."""
    return json.dumps([segment.as_json() for segment in segments], ensure_ascii=False)


def check_arrays(features: Array, mel: Array, spans: np.ndarray, sizes: Sizes) -> None:
    """Raises unless the arrays belong to this checkpoint and to each other.

    Raises:
        InputError: One of them has another shape, or a span lies outside the recording.
    """
    expected = [sizes.n_audio_ctx, sizes.n_audio_state]
    if features.ndim != 3 or list(features.shape[1:]) != expected or not len(features):
        raise InputError(
            f"FEATURES: shape {list(features.shape)}; [windows, {expected[0]}, {expected[1]}] is expected; "
            "serve encoder and decoder of the same checkpoint"
        )
    if mel.ndim != 2 or mel.shape[0] != sizes.n_mels:
        raise InputError(
            f"MEL: shape {list(mel.shape)}; [{sizes.n_mels}, frames] is expected; "
            "serve features and decoder of the same checkpoint"
        )
    if spans.ndim != 2 or spans.shape[1] != 2 or len(spans) < len(features):
        raise InputError(
            f"SPANS: shape {list(spans.shape)}; [windows, 2] with at least the {len(features)} windows of FEATURES "
            "is expected; pass on what whisper_features gave"
        )
    ends = spans.sum(axis=1)
    if (spans < 0).any() or (spans[:, 1] > WINDOW_FRAMES).any() or (ends > mel.shape[1]).any():
        raise InputError(
            f"SPANS: a span outside the {mel.shape[1]} frames of MEL or longer than {WINDOW_FRAMES}; "
            "start frame and frames are expected; pass on what whisper_features gave"
        )


def mode_of(text: str) -> str:
    """The mode meant by MODE.

    Raises:
        InputError: Neither exact nor fast.
    """
    mode = text.strip().lower() or MODES[0]
    if mode not in MODES:
        raise InputError(f'MODE: "{text}"; {" or ".join(MODES)} is expected; leave it empty for {MODES[0]}')
    return mode


def _tracks(ask: Ask, tokens: Tokens, vocabulary: Vocabulary) -> list[Track]:
    """One track over all in exact mode; one for each span in fast mode."""
    if ask.mode == "exact":
        return [Track(tokens, vocabulary, start=0, end=ask.mel.shape[1], is_prompted=True)]
    return [
        Track(tokens, vocabulary, start=int(start), end=int(start + frames), is_prompted=False)
        for start, frames in ask.spans
    ]
