"""What is sent: real recordings, pictures and questions for the shipped pipelines, and inputs of any other model.

In: files, folders, rows. Out: Items. Several sizes of one file make a mixed load of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clients.assistant import ask_request
from clients.audio import load_samples
from clients.defaults import SAMPLE_RATE_HZ
from clients.detect import detect_request
from clients.image import load_image
from clients.llm import chat_request
from clients.transcribe import transcribe_request
from load.errors import LoadError
from load.triton import Item

PIPELINES = ("transcribe", "detect", "assistant", "llm")
SAMPLES = Path(__file__).parents[1] / "samples"
QUESTIONS = ("What do you hear and see?",)
SPEECH = "*.flac *.wav *.mp3 *.ogg *.opus"
PICTURES = "*.jpg *.jpeg *.png *.webp"
MAX_TOKENS = 64
Media = tuple[str, np.ndarray]  # what it is called; its samples or the bytes of its file


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
        questions: for assistant and llm; answered with temperature 0, so that answers can be compared.
        audio_seconds: each recording cut, or repeated, to these lengths; as it is if empty.
        image_pixels: each picture scaled so that its longer side has so many pixels; as it is if empty.
        max_tokens: of an answer.

    Raises:
        LoadError: no such pipeline, or no files.
    """
    sounds = recordings(audio, audio_seconds) if pipeline in ("transcribe", "assistant") else ()
    photos = pictures(images, image_pixels) if pipeline in ("detect", "assistant") else ()
    sampling: dict[str, Any] = {"max_tokens": max_tokens, "temperature": 0}
    match pipeline:
        case "transcribe":
            return tuple(Item(name=name, request=transcribe_request(samples)) for name, samples in sounds)
        case "detect":
            return tuple(Item(name=name, request=detect_request(file)) for name, file in photos)
        case "llm":
            return tuple(Item(name=one[:40], request=chat_request(one, **sampling)) for one in questions)
        case "assistant":
            asked = [
                ask_request(one[1], two[1], words, **sampling) for one, two, words in mixed(sounds, photos, questions)
            ]
            names = [f"{one[0]} + {two[0]}" for one, two, _ in mixed(sounds, photos, questions)]
            return tuple(Item(name=name, request=request) for name, request in zip(names, asked, strict=True))
    raise LoadError(
        pipeline, "not a shipped pipeline", f"one of {', '.join(PIPELINES)} is needed", "See items_of_rows."
    )


def mixed(*kinds: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """As many combinations as the longest has members: each member is used, the shorter ones again from their start."""
    return zip(*(itertools.islice(itertools.cycle(kind), max(map(len, kinds))) for kind in kinds), strict=True)


def recordings(paths: Sequence[Path], seconds: Sequence[float]) -> tuple[Media, ...]:
    """Samples of each recording: float32 [n], mono, 16 kHz."""
    found = [(path.name, load_samples(path)) for path in files(paths, SPEECH)]
    if not seconds:
        return tuple((f"{name} {samples.size / SAMPLE_RATE_HZ:.1f} s", samples) for name, samples in found)
    cut = [
        (name, np.resize(samples, round(length * SAMPLE_RATE_HZ)), length)
        for name, samples in found
        for length in seconds
    ]
    return tuple((f"{name} {length:g} s", samples) for name, samples, length in cut)


def pictures(paths: Sequence[Path], pixels: Sequence[int]) -> tuple[Media, ...]:
    """The bytes of each picture's file: uint8 [n]."""
    found = files(paths, PICTURES)
    if not pixels:
        return tuple((path.name, load_image(path)) for path in found)
    return tuple((f"{path.name} {side} px", scaled(path, side)) for path in found for side in pixels)


def scaled(path: Path, side: int) -> np.ndarray:
    """The picture with a longer side of so many pixels, as the bytes of a JPEG file."""
    import io

    from PIL import Image, ImageOps

    with Image.open(path) as opened:
        upright = ImageOps.exif_transpose(opened).convert("RGB")
    factor = side / max(upright.size)
    packed = io.BytesIO()
    upright.resize([max(1, round(edge * factor)) for edge in upright.size]).save(packed, format="JPEG", quality=90)
    return load_image(packed.getvalue())


def files(paths: Iterable[Path], patterns: str) -> list[Path]:
    """The files given, and those of these kinds in the folders given.

    Raises:
        LoadError: none.
    """
    found: list[Path] = []
    for path in paths:
        below = sorted(one for pattern in patterns.split() for one in path.rglob(pattern)) if path.is_dir() else [path]
        if not below or not below[0].is_file():
            raise LoadError(str(path), "no such file" if not path.is_dir() else "no such files in it", patterns)
        found += below
    return found
