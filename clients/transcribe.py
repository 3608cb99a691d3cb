"""The pipeline `transcribe`: samples become its request, its response becomes a Transcript."""

from typing import Any, Literal

from clients.arrays import need, read_json, read_text, tensor, text
from clients.audio import Audio, load_samples
from clients.defaults import SAMPLE_RATE_HZ
from clients.tensors import Request, Response, Tensor
from clients.values import Segment, Transcript

MODEL = "transcribe"
Task = Literal["transcribe", "translate"]
Mode = Literal["exact", "fast"]


def transcribe_request(
    samples: Audio,
    *,
    sample_rate_hz: int = SAMPLE_RATE_HZ,
    language: str | None = None,
    task: str = "transcribe",
    mode: str = "exact",
) -> Request:
    """The request for one recording; `samples` as load_samples takes them."""
    audio = tensor("AUDIO", load_samples(samples, sample_rate_hz))
    return Request(model=MODEL, tensors=(audio, *speech_options(language, task, mode)))


def speech_options(language: str | None, task: str, mode: str) -> tuple[Tensor, ...]:
    """The tensors of Whisper's options; no language lets the model find it."""
    spoken = () if language is None else (text("LANGUAGE", language),)
    return (*spoken, text("TASK", task), text("MODE", mode))


def read_transcript(response: Response) -> Transcript:
    """The transcript that a response of `transcribe` holds."""
    return Transcript(
        text=need(read_text(response, "TRANSCRIPT"), MODEL, "TRANSCRIPT"),
        segments=tuple(_segment(one) for one in read_json(response, "SEGMENTS") or ()),
        language=read_text(response, "DETECTED_LANGUAGE") or "",
    )


def _segment(found: dict[str, Any]) -> Segment:
    return Segment(
        start_s=float(found["start"]),
        end_s=float(found["end"]),
        text=found["text"],
        tokens=tuple(found.get("tokens", ())),
        avg_logprob=found.get("avg_logprob"),
        no_speech_prob=found.get("no_speech_prob"),
    )
