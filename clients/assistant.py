"""The pipeline `assistant` and its three prunings: what was given chooses one, its responses become typed events."""

from collections.abc import Iterator
from typing import Any

from clients.arrays import json_text, read_json, read_text, tensor, text
from clients.audio import Audio, load_samples
from clients.defaults import MAX_TOKENS, SAMPLE_RATE_HZ
from clients.detect import as_detections, box_options
from clients.errors import ArrayError
from clients.image import Image, load_image
from clients.llm import read_chat_events, sampling_options
from clients.tensors import Request, Response, Tensor
from clients.transcribe import speech_options
from clients.values import Event, Heard, Seen

PIPELINE = "assistant"


def ask_request(
    audio: Audio | None = None,
    image: Image | None = None,
    question: str = "",
    *,
    sample_rate_hz: int = SAMPLE_RATE_HZ,
    language: str | None = None,
    task: str | None = None,
    mode: str | None = None,
    confidence: float | None = None,
    iou: float | None = None,
    max_tokens: int = MAX_TOKENS,
    **sampling: Any,
) -> Request:
    """The request for a question about a recording, a picture, both or neither.

    Raises:
        ArrayError: an option for the recording or the picture came without it.
    """
    _check_belongs("audio", audio, {"language": language, "task": task, "mode": mode})
    _check_belongs("image", image, {"confidence": confidence, "iou": iou})
    tensors: tuple[Tensor, ...] = ()
    if audio is not None:
        tensors += (tensor("AUDIO", load_samples(audio, sample_rate_hz)),)
        tensors += speech_options(language, task or "transcribe", mode or "exact")
    if image is not None:
        tensors += (tensor("IMAGE", load_image(image)), *box_options(confidence, iou))
    options = json_text("SAMPLING_PARAMETERS", sampling_options(max_tokens, sampling))
    return Request(model=_model(audio, image), tensors=(*tensors, text("QUESTION", question), options))


def read_events(response: Response) -> Iterator[Event]:
    """The events in one streamed response, in the order in which a reader wants them."""
    transcript = read_text(response, "TRANSCRIPT")
    if transcript is not None:
        yield Heard(transcript=transcript)
    detections = read_json(response, "DETECTIONS")
    if detections is not None:
        yield Seen(detections=as_detections(detections))
    yield from read_chat_events(response)


def _model(audio: Audio | None, image: Image | None) -> str:
    if audio is None:
        return f"{PIPELINE}_text" if image is None else f"{PIPELINE}_image"
    return f"{PIPELINE}_audio" if image is None else PIPELINE


def _check_belongs(what: str, value: Any, options: dict[str, Any]) -> None:
    for name, option in options.items():
        if value is None and option is not None:
            raise ArrayError(f"ask, {name}", f"{option!r} was given without {what}", f"it is an option of {what}")
