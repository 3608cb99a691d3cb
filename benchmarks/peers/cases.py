"""What is asked, and the right answers: from the same files, alone and one at a time, in a process of its own.

    python -m benchmarks.peers.cases SERVICE      writes the right answers of a service, for everybody to read

A body is what the peers are sent; see work/services.py.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.work.places import CACHE, ROOT
from benchmarks.peers.work.small import FRAME, WIDTH

QUESTION = "What do you hear and see?"
SENTENCES = (
    "Go forward 10 meters.",
    "Please close the window before you leave.",
    "He might even have been made amiable himself.",
    "The train to the north leaves from platform nine.",
)
THINGS = (("cup",), ("dog", "dog", "car"), ("person", "bus"), ("bowl", "bowl", "bowl"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request and its right answer."""

    body: bytes
    expected: Any


def cases_of(service: str) -> tuple[Case, ...]:
    """The cases of a service, their answers as they were written."""
    answers = json.loads(_file(service).read_text(encoding="utf-8"))
    return tuple(Case(body=body, expected=one) for body, one in zip(bodies(service), answers, strict=True))


def write_answers(service: str) -> None:
    """Works out the right answers, one at a time."""
    answers = [_answered(service, body) for body in bodies(service)]
    if len({json.dumps(one) for one in answers}) != len(answers):
        raise RuntimeError(f"{service}: two cases have the same answer: a mix-up of requests would not show")
    _file(service).parent.mkdir(parents=True, exist_ok=True)
    _file(service).write_text(json.dumps(answers), encoding="utf-8")


def _file(service: str) -> Path:
    return CACHE / "answers" / f"{service}.json"


def bodies(service: str) -> list[bytes]:
    """What is asked."""
    numbers = np.random.default_rng(7)
    match service:
        case "detect":
            return pictures()
        case "transcribe":
            return [one.tobytes() for one in recordings()]
        case "both" | "assistant":
            media = zip(pictures(), recordings(), strict=True)
            return [
                _json({"image": _b64(one), "audio": _b64(two.tobytes()), "question": QUESTION}) for one, two in media
            ]
        case "gemm":
            return [numbers.standard_normal(WIDTH).astype(np.float32).tobytes() for _ in range(8)]
        case "frame":
            return [(numbers.random(FRAME, np.float32) + one).tobytes() for one in range(2)]
        case "chat":
            return [_json({"messages": one}) for one in chats()]
    raise ValueError(f"{service}: no such service")


def pictures() -> list[bytes]:
    """The sample photo as it is, mirrored, a part of it, enlarged: JPEG files."""
    from PIL import Image, ImageOps

    photo = Image.open(ROOT / "samples" / "coffee.jpg")
    width, height = photo.size
    made = [ImageOps.mirror(photo), photo.crop((width // 8, 0, width, height)), photo.resize((1280, 853))]
    return [(ROOT / "samples" / "coffee.jpg").read_bytes(), *map(_jpeg, made)]


def recordings() -> list[np.ndarray]:
    """The sample recording whole, its first part, its last part, and twice: float32 [n], 16 kHz."""
    import soundfile

    whole, _ = soundfile.read(ROOT / "samples" / "sense_and_sensibility.flac", dtype="float32")
    pause = np.zeros(8000, np.float32)
    return [whole, whole[:56000], whole[56000:], np.concatenate([whole, pause, whole])]


def chats() -> list[list[dict[str, str]]]:
    """Prompts of the pipeline `assistant`, of different lengths."""
    from benchmarks.peers.work.asking import messages_of

    return [
        messages_of(sentence, [{"label": label} for label in things], QUESTION)
        for sentence, things in zip(SENTENCES, THINGS, strict=True)
    ]


def _answered(service: str, body: bytes) -> Any:
    from benchmarks.peers.work.services import SERVICES, ask_in

    if service in ("chat", "assistant") and "writer" not in _LOADED:
        from benchmarks.peers.apps.hf_app import Writer

        _LOADED["writer"] = Writer()
    if service != "chat" and service not in _LOADED:
        _LOADED[service] = SERVICES["both" if service == "assistant" else service].load()
    if service == "chat":
        return {"text": _LOADED["writer"].write(json.loads(body)["messages"])}
    if service == "assistant":
        from benchmarks.peers.work.asking import messages_of

        picture, samples, question = ask_in(body)
        noticed = _LOADED[service].batch([(picture, samples)])[0]
        chat = messages_of(noticed["transcript"], noticed["detections"], question)
        return {**noticed, "text": _LOADED["writer"].write(chat)}
    return _LOADED[service].batch([SERVICES[service].read(body)])[0]


_LOADED: dict[str, Any] = {}


def _jpeg(picture: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=92)
    return file.getvalue()


def _b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


if __name__ == "__main__":
    write_answers(sys.argv[1])
