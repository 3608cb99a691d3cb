"""Transcripts in the forms that OpenAI's API has: json, text, srt, vtt, verbose_json, and the events of a stream."""

from collections.abc import Callable
from typing import Any

from starlette.responses import PlainTextResponse, Response

from clients.gateway.replies import json_response
from clients.show import srt
from clients.values import Segment, Transcript

Json = dict[str, Any]


def whole(transcript: Transcript, form: str, task: str, duration_s: float) -> Response:
    """The response in one of FORMS."""
    return FORMS[form](transcript, task, duration_s)


def vtt(segments: tuple[Segment, ...]) -> str:
    """The segments as a WebVTT file."""
    cues = [f"{clock(one.start_s)} --> {clock(one.end_s)}\n{cue_text(one.text)}\n" for one in segments]
    return "WEBVTT\n\n" + "\n".join(cues)


def cue_text(text: str) -> str:
    """The text of a cue: an arrow would end it, and < begins markup."""
    return text.strip().replace("&", "&amp;").replace("<", "&lt;").replace("-->", "--&gt;")


def clock(seconds: float) -> str:
    """hh:mm:ss.mmm"""
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}"


def verbose(transcript: Transcript, task: str, duration_s: float) -> Json:
    """The transcript with its segments."""
    segments = [segment_json(place, one) for place, one in enumerate(transcript.segments)]
    return {
        "task": task,
        "language": transcript.language,
        "duration": duration_s,
        "text": transcript.text.strip(),
        "segments": segments,
    }


def segment_json(place: int, one: Segment) -> Json:
    """One segment. What the served model doesn't say is left out, not made up."""
    said = {"avg_logprob": one.avg_logprob, "no_speech_prob": one.no_speech_prob}
    known = {name: value for name, value in said.items() if value is not None}
    times = {"id": place, "start": one.start_s, "end": one.end_s}
    return {**times, "text": one.text, "tokens": list(one.tokens), **known}


def _text(body: str) -> Response:
    return PlainTextResponse(body)


Form = Callable[[Transcript, str, float], Response]
FORMS: dict[str, Form] = {
    "json": lambda transcript, task, seconds: json_response({"text": transcript.text.strip()}),
    "text": lambda transcript, task, seconds: _text(transcript.text.strip() + "\n"),
    "srt": lambda transcript, task, seconds: _text(srt(transcript.segments)),
    "vtt": lambda transcript, task, seconds: _text(vtt(transcript.segments)),
    "verbose_json": lambda transcript, task, seconds: json_response(verbose(transcript, task, seconds)),
}
