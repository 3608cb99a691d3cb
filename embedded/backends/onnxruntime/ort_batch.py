"""Many requests in one run: rows put together along the first dimension, and the answer cut apart again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Arrays = Mapping[str, np.ndarray]


def joined(requests: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """One array per input with the rows of all requests; the request's own arrays, uncopied, when there is only one."""
    if len(requests) == 1:
        return dict(requests[0])
    return {name: np.concatenate([arrays[name] for arrays in requests]) for name in requests[0]}


def row_counts(requests: Sequence[Arrays]) -> list[int]:
    """How many rows each request brought."""
    return [len(next(iter(arrays.values()))) for arrays in requests]


def split(outputs: Mapping[str, np.ndarray], counts: Sequence[int]) -> list[dict[str, np.ndarray]]:
    """The rows of each request, as views.

    Raises:
        ValueError: an output has another number of rows than went in.
    """
    total = sum(counts)
    for name, array in outputs.items():
        if array.ndim == 0 or len(array) != total:
            raise ValueError(f"output '{name}' has shape {list(array.shape)}; {total} rows were expected in front")
    ends = np.cumsum(counts)
    return [
        {name: array[end - count : end] for name, array in outputs.items()}
        for end, count in zip(ends, counts, strict=True)
    ]
