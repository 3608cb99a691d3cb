"""/v1/audio/transcriptions and /v1/audio/translations: a sound file in, what is said in it out."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.responses import Response

from clients.defaults import SAMPLE_RATE_HZ
from clients.gateway.captions import FORMS, whole
from clients.gateway.media import samples_of
from clients.gateway.pieces import pieces
from clients.gateway.problems import invalid, unsupported
from clients.gateway.replies import EventStream, begun
from clients.gateway.settings import Settings
from clients.gateway.upstream import Upstream
from clients.values import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioAsk:
    """One request; task: transcribe, or translate to English."""

    data: bytes
    task: str
    language: str | None = None
    response_format: str = "json"
    stream: bool = False
    prompt: str | None = None
    temperature: float | None = None
    granularities: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


async def answer_audio(ask: AudioAsk, upstream: Upstream, settings: Settings) -> Response:
    """The response to one request."""
    check_ask(ask)
    samples = await samples_of(ask.data, settings.max_audio_s, "file")
    options = {"language": ask.language or None, "task": ask.task}
    if ask.stream:
        return EventStream(await begun(spoken(samples, options, upstream)), ends_with_done=False)
    transcript = await upstream.transcribe(samples, **options)
    return whole(transcript, ask.response_format, ask.task, len(samples) / SAMPLE_RATE_HZ)


async def spoken(samples: np.ndarray, options: dict[str, Any], upstream: Upstream) -> AsyncGenerator[Any, None]:
    """The events of a streamed transcript: the text of each piece of the recording as soon as it is known."""
    text = ""
    for _, piece in pieces(samples):
        found: Transcript = await upstream.transcribe(piece, **options)
        delta = found.text.strip()
        if delta:
            delta = f" {delta}" if text else delta
            text += delta
            yield [{"type": "transcript.text.delta", "delta": delta}]
        options = {**options, "language": options["language"] or found.language or None}
    yield [{"type": "transcript.text.done", "text": text}]


def check_ask(ask: AudioAsk) -> None:
    """Raises Problem for what the served Whisper can't do."""
    if ask.response_format not in FORMS:
        raise invalid("response_format", f"{ask.response_format!a}", f"one of {', '.join(FORMS)} is needed")
    if ask.prompt:
        raise unsupported("prompt", "the served Whisper takes no text to begin with")
    if ask.temperature:
        raise unsupported("temperature", "the served Whisper chooses it itself, from 0 up as it needs to")
    if ask.include:
        raise unsupported("include[]", "the served Whisper has no output for it")
    if set(ask.granularities) - {"segment"}:
        raise unsupported("timestamp_granularities[]", "the served Whisper times segments, not words")
    if ask.stream and ask.response_format != "json":
        raise unsupported("response_format", "a streamed transcript is a stream of JSON events")
