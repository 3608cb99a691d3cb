"""Service name -> what does it and how its bytes are read. The same for every peer.

A body is the bytes of the picture, of the samples (float32), of the row or of the frame; for services with several
inputs it is JSON with those bytes in base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Work(Protocol):
    """Something that is loaded once and answers a batch at a time."""

    def batch(self, asked: Sequence[Any]) -> list[Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One thing that can be asked.

    Attributes:
        load: makes the work; takes seconds.
        read: a body -> what `batch` takes for it.
        most: largest batch, as in the served configs.
        wait_s: how long a batch may wait for more, as in the served configs.
    """

    load: Callable[[], Work]
    read: Callable[[bytes], Any]
    most: int = 8
    wait_s: float = 0.005


def samples_in(body: bytes) -> np.ndarray:
    """float32 [n]."""
    return np.frombuffer(body, np.float32)


def frame_in(body: bytes) -> np.ndarray:
    """float32 [3, 1024, 1024]."""
    return np.frombuffer(body, np.float32).reshape(3, 1024, 1024)


def both_in(body: bytes) -> tuple[bytes, np.ndarray]:
    """Picture and samples."""
    given = json.loads(body)
    return base64.b64decode(given["image"]), samples_in(base64.b64decode(given["audio"]))


def ask_in(body: bytes) -> tuple[bytes, np.ndarray, str]:
    """Picture, samples and question."""
    return (*both_in(body), json.loads(body)["question"])


def _seeing() -> Work:
    from benchmarks.peers.work.seeing import Seeing

    return Seeing()


def _hearing() -> Work:
    from benchmarks.peers.work.hearing import Hearing

    return Hearing()


def _both() -> Work:
    from benchmarks.peers.work.asking import Both

    return Both()


def _assistant() -> Work:
    from benchmarks.peers.work.asking import Assistant

    return Assistant()


def _gemm() -> Work:
    from benchmarks.peers.work.small import Gemm

    return Gemm()


def _frame() -> Work:
    from benchmarks.peers.work.small import Frame

    return Frame()


SERVICES = {
    "detect": Service(load=_seeing, read=bytes),
    "transcribe": Service(load=_hearing, read=samples_in, wait_s=0.01),
    "both": Service(load=_both, read=both_in, wait_s=0.01),
    "assistant": Service(load=_assistant, read=ask_in, wait_s=0.01),
    "gemm": Service(load=_gemm, read=samples_in, most=32, wait_s=0.01),
    "frame": Service(load=_frame, read=frame_in, most=1, wait_s=0.0),
}
