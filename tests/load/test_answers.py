"""When two answers are the same."""

from typing import Any

import numpy as np
import pytest

from load.answers import difference

TEXT = np.array([b"a cup"], dtype=object)
FLOATS = np.array([1.0, -200.0, 0.0], dtype=np.float32)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (TEXT, TEXT.copy()),
        (FLOATS, FLOATS + np.float32(1e-5)),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf])),
        (b'{"score": 0.51234, "at": [1, 2]}', b'{"score": 0.51235, "at": [1, 2]}'),
        ("whole", "whole"),
        ({"text": "x", "n": 1}, {"text": "x", "n": 1}),
    ],
)
def test_answers_that_differ_in_rounding_only_are_the_same(expected: Any, found: Any) -> None:
    assert difference({"OUT": expected}, {"OUT": found}) == ""


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (TEXT, np.array([b"a cap"], dtype=object)),
        (FLOATS, FLOATS + np.float32(1)),
        (FLOATS, FLOATS[:2]),
        (FLOATS, FLOATS.astype(np.float64)),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([np.nan]), np.array([0.0])),
        (b'{"score": 0.51}', b'{"score": 0.52}'),
        (b'{"label": "cup"}', b'{"label": "cap"}'),
        (b"[1, 2]", b"[1, 2, 3]"),
        (b"[1, 2", b"[1, 3"),
        ("1.0", "1.00001"),
        ({"text": "x"}, {"text": "x", "more": 1}),
    ],
)
def test_answers_that_differ_in_what_they_say_are_not(expected: Any, found: Any) -> None:
    assert difference({"OUT": expected}, {"OUT": found}).startswith("OUT: ")


def test_a_missing_output_is_a_difference() -> None:
    assert difference({"A": TEXT, "B": TEXT}, {"A": TEXT}) == "outputs A instead of A, B"
