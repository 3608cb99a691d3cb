"""Whether two answers to the same input are the same answer. Pure.

Text and whole numbers must be equal. Floats may differ in their last digits, in arrays and in JSON texts alike: a
model that computes several requests as one batch adds in another order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

RELATIVE = 1e-3
OF_LARGEST = 1e-4
SHOWN = 60


def difference(expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """What differs, in words; "" if nothing does."""
    if expected.keys() != found.keys():
        return f"outputs {', '.join(sorted(found)) or 'none'} instead of {', '.join(sorted(expected)) or 'none'}"
    for name, value in expected.items():
        if not is_same(value, found[name]):
            return f"{name}: {shown(found[name])} instead of {shown(value)}"
    return ""


def is_same(expected: Any, found: Any) -> bool:
    """Whether two values are the same but for rounding."""
    if isinstance(expected, np.ndarray) and isinstance(found, np.ndarray):
        return _is_same_array(expected, found)
    if isinstance(expected, bytes | str) and isinstance(found, bytes | str):
        return expected == found or _is_same_json(expected, found)
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return expected.keys() == found.keys() and all(is_same(expected[key], found[key]) for key in expected)
    if isinstance(expected, float) and isinstance(found, int | float):
        return abs(expected - found) <= OF_LARGEST + RELATIVE * abs(expected)
    if isinstance(expected, Sequence) and isinstance(found, Sequence):
        return len(expected) == len(found) and all(map(is_same, expected, found))
    return bool(expected == found)


def _is_same_array(expected: np.ndarray, found: np.ndarray) -> bool:
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return False
    if expected.dtype == object:
        return all(map(is_same, expected.reshape(-1).tolist(), found.reshape(-1).tolist()))
    if expected.dtype.kind != "f":
        return bool(np.array_equal(expected, found))
    finite = np.abs(expected[np.isfinite(expected)])
    slack = OF_LARGEST * float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(found, expected, rtol=RELATIVE, atol=slack, equal_nan=True))


def _is_same_json(expected: str | bytes, found: str | bytes) -> bool:
    if expected[:1] not in ("{", "[", b"{", b"["):
        return False
    try:
        return is_same(json.loads(expected), json.loads(found))
    except ValueError:
        return False


def shown(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {list(value.shape)} {np.array2string(value.reshape(-1)[:4], separator=' ')}"
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return repr(text[:SHOWN] + ("..." if len(text) > SHOWN else ""))
