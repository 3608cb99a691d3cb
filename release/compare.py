"""The same recorded inputs to two models, and where their answers differ.

A recording is an .npz file: one array for each input, text as arrays of text.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from release.errors import FolderError

Outputs = Mapping[str, np.ndarray]


class Asks(Protocol):
    """What is needed of a client: clients.Client has it."""

    def stream(self, model: str, inputs: Mapping[str, Any]) -> Iterable[Outputs]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two models on some recordings. differences: one line each; seconds: how long each took in all."""

    recordings: int
    differences: tuple[str, ...]
    old_s: float
    new_s: float


def read_recording(file: Path) -> dict[str, np.ndarray]:
    """The inputs in a recording.

    Raises:
        FolderError: no such file, or one that would run code when read.
    """
    try:
        with np.load(file, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError) as error:
        advice = "Write one with numpy.savez(file, INPUT=array)."
        raise FolderError(str(file), f"no recording ({error})", "an .npz of plain arrays is needed", advice) from error
    return {name: one.astype(object) if one.dtype.kind in "US" else one for name, one in arrays.items()}


def compare(client: Asks, old: str, new: str, recordings: Sequence[Path], tolerance: float) -> Comparison:
    """Both models on every recording; numbers may differ by `tolerance`, relative to the larger, or absolute."""
    differences: list[str] = []
    spent = {old: 0.0, new: 0.0}
    for file in recordings:
        inputs = read_recording(file)
        answers = {}
        for model in (old, new):
            began = time.monotonic()
            answers[model] = list(client.stream(model, inputs))
            spent[model] += time.monotonic() - began
        differences += [f"{file.name}: {words}" for words in differing(answers[old], answers[new], tolerance)]
    return Comparison(recordings=len(recordings), differences=tuple(differences), old_s=spent[old], new_s=spent[new])


def differing(old: list[Outputs], new: list[Outputs], tolerance: float) -> list[str]:
    """How two answers differ, in words."""
    if len(old) != len(new):
        return [f"{len(new)} responses instead of {len(old)}"]
    found = []
    for one, other in zip(old, new, strict=True):
        names = {
            name: (one.get(name), other.get(name)) for name in (*one, *(name for name in other if name not in one))
        }
        found += [f"{name} {words}" for name, pair in names.items() if (words := difference(*pair, tolerance))]
    return found


def difference(old: np.ndarray | None, new: np.ndarray | None, tolerance: float) -> str:
    """How two outputs differ, "" if they don't."""
    if old is None or new is None:
        return "is missing" if new is None else "is new"
    if old.dtype != new.dtype or old.shape != new.shape:
        return f"is {new.dtype} {list(new.shape)} instead of {old.dtype} {list(old.shape)}"
    if old.dtype.kind != "f":
        return "" if np.array_equal(old, new) else f"is {shown(new)} instead of {shown(old)}"
    if np.allclose(old, new, rtol=tolerance, atol=tolerance, equal_nan=True):
        return ""
    return f"differs by up to {np.nanmax(np.abs(old.astype(np.float64) - new)):.3g}"


def shown(array: np.ndarray) -> str:
    text = np.array2string(array.reshape(-1)[:4], threshold=4)
    return text if len(text) <= 80 else text[:77] + "..."
