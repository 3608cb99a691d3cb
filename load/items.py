"""What is sent: real recordings, pictures and questions for the shipped pipelines, files for any other model.

In: files and folders. Out: Items. Several sizes of one file make a mixed load of it.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clients.assistant import ask_request
from clients.audio import load_samples
from clients.defaults import SAMPLE_RATE_HZ
from clients.detect import detect_request
from clients.image import load_image
from clients.llm import chat_request
from clients.tensors import Request
from clients.transcribe import transcribe_request
from load.errors import LoadError
from load.triton import Item
from shipped import SAMPLES

TAKES = {
    "transcribe": ("audio",),
    "detect": ("image",),
    "assistant": ("audio", "image", "question"),
    "assistant_audio": ("audio", "question"),
    "assistant_image": ("image", "question"),
    "assistant_text": ("question",),
    "llm": ("question",),
}
QUESTIONS = ("What do you hear and see?",)
SOUNDS = (".flac", ".wav", ".mp3", ".ogg", ".opus")
PICTURES = (".jpg", ".jpeg", ".png", ".webp")
MAX_TOKENS = 64
Named = tuple[str, Any]  # what it is called; its samples, the bytes of its file, or its words


def items_for(
    pipeline: str,
    *,
    audio: Sequence[Path] = (SAMPLES,),
    images: Sequence[Path] = (SAMPLES,),
    questions: Sequence[str] = QUESTIONS,
    audio_seconds: Sequence[float] = (),
    image_pixels: Sequence[int] = (),
    max_tokens: int = MAX_TOKENS,
) -> tuple[Item, ...]:
    """The items of a shipped pipeline.

    Args:
        audio, images: files, or folders whose sound and picture files are taken, all below them.
        questions: answered with temperature 0, so that answers can be compared.
        audio_seconds: each recording cut, or repeated, to these lengths; as it is if empty.
        image_pixels: each picture scaled so that its longer side has so many pixels; as it is if empty.
        max_tokens: of an answer.

    Raises:
        LoadError: no such pipeline, or no files.
    """
    if pipeline not in TAKES:
        advice = "Other models: load.inputs makes items of files, rows or random values."
        raise LoadError(pipeline, "not a shipped pipeline", f"one of {', '.join(TAKES)} is needed", advice)
    kinds: dict[str, Callable[[], Sequence[Named]]] = {
        "audio": lambda: recordings(audio, audio_seconds),
        "image": lambda: pictures(images, image_pixels),
        "question": lambda: [(one[:40], one) for one in questions],
    }
    parts = [kinds[kind]() for kind in TAKES[pipeline]]
    made = []
    for together in mixed(*parts):
        given = {kind: value for kind, (_, value) in zip(TAKES[pipeline], together, strict=True)}
        made.append(Item(name=" + ".join(name for name, _ in together), request=_request(pipeline, given, max_tokens)))
    return tuple(made)


def _request(pipeline: str, given: Mapping[str, Any], max_tokens: int) -> Request:
    sampling: dict[str, Any] = {"max_tokens": max_tokens, "temperature": 0}
    if pipeline == "transcribe":
        return transcribe_request(given["audio"])
    if pipeline == "detect":
        return detect_request(given["image"])
    if pipeline == "llm":
        return chat_request(given["question"], **sampling)
    return ask_request(given.get("audio"), given.get("image"), given["question"], **sampling)


def mixed(*kinds: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """As many combinations as the longest has members: each member is used, the shorter ones again from their start."""
    return zip(*(itertools.islice(itertools.cycle(kind), max(map(len, kinds))) for kind in kinds), strict=True)


def recordings(paths: Sequence[Path], seconds: Sequence[float]) -> list[Named]:
    """Samples of each recording: float32 [n], mono, 16 kHz."""
    found = [(path.name, load_samples(path)) for path in files(paths, SOUNDS)]
    if not seconds:
        return [(f"{name} {samples.size / SAMPLE_RATE_HZ:.1f} s", samples) for name, samples in found]
    return [
        (f"{name} {length:g} s", np.resize(samples, round(length * SAMPLE_RATE_HZ)))
        for name, samples in found
        for length in seconds
    ]


def pictures(paths: Sequence[Path], pixels: Sequence[int]) -> list[Named]:
    """The bytes of each picture's file: uint8 [n]."""
    found = files(paths, PICTURES)
    if not pixels:
        return [(path.name, load_image(path)) for path in found]
    return [(f"{path.name} {side} px", scaled(path, side)) for path in found for side in pixels]


def scaled(path: Path, side: int) -> np.ndarray:
    """The picture with a longer side of so many pixels, as the bytes of a JPEG file: uint8 [n]."""
    from PIL import Image, ImageOps

    with Image.open(path) as opened:
        upright = ImageOps.exif_transpose(opened).convert("RGB")
    width, height = (max(1, round(edge * side / max(upright.size))) for edge in upright.size)
    packed = io.BytesIO()
    upright.resize((width, height)).save(packed, format="JPEG", quality=90)
    return load_image(packed.getvalue())


def files(paths: Iterable[Path], suffixes: Sequence[str]) -> list[Path]:
    """The files given, and those with these suffixes in the folders given; with any, if none are named.

    Raises:
        LoadError: none.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(one for one in path.rglob("*") if one.is_file())
            below = [one for one in inside if not suffixes or one.suffix.lower() in suffixes]
        else:
            below = [path] if path.is_file() else []
        if not below:
            expected = f"a file, or a folder with {' '.join(suffixes) or 'files'} in it, is needed"
            raise LoadError(str(path), "nothing of the kind", expected)
        found += below
    return found
