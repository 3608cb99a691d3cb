"""What the calls give back, as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of speech: start_s and end_s in seconds from the start of the recording."""

    start_s: float
    end_s: float
    text: str
    tokens: tuple[int, ...] = ()
    avg_logprob: float | None = None
    no_speech_prob: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was said; language as Whisper's code, such as "en"."""

    text: str
    segments: tuple[Segment, ...]
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """One object; box: x1 y1 x2 y2 in pixels of the original image; score 0 to 1."""

    label: str
    score: float
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Detections:
    """The objects in an image of width x height pixels (as shown, after EXIF rotation), best first."""

    width: int
    height: int
    items: tuple[Detection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The transcript of the audio; comes before the first word of the answer."""

    transcript: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The objects in the image; comes before the first word of the answer."""

    detections: Detections


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """How likely a token was, as natural logarithms; top: the likeliest ones in its place, best first."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The next piece of the answer; the pieces joined are the answer. logprobs: of its tokens, if asked for."""

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of the answer: why it ended ("stop", "length", ...) and what it took."""

    reason: str
    prompt_tokens: int
    completion_tokens: int


ChatEvent = Delta | Finished
Event = Heard | Seen | Delta | Finished
