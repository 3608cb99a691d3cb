"""Tensors as a config describes them: the short form people write, and when two ends of an edge agree.

In: `"MODE? STRING [1]"`, or a dict by Triton's names. Out: a dict by Triton's names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from builder.datatypes import DATA_TYPES, data_type_of
from builder.errors import DeclarationError

_SHORT = re.compile(r"\s*(?P<name>[^\s?\[\]]+)(?P<optional>\?)?\s+(?P<type>\w+)\s*\[(?P<dims>[^\]]*)\]\s*")


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word of `words` that somebody who wrote `word` most likely meant; None when nothing is near."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    close = get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """`; did you mean X?` or nothing."""
    match = nearest(word, words)
    return f"; did you mean {match}?" if match else ""


def tensor(declared: str | Mapping[str, Any]) -> dict[str, Any]:
    """A tensor by Triton's names, from its short form (`"MODE? STRING [1]"`, `?` for optional) or from a dict.

    Raises:
        DeclarationError: the short form does not parse, or names no data type.
    """
    if not isinstance(declared, str):
        return dict(declared)
    match = _SHORT.fullmatch(declared)
    if match is None:
        raise DeclarationError(
            where=f"tensor {declared!r}",
            found="this is not a tensor's short form",
            expected="NAME TYPE [dims] is needed, as in 'AUDIO FP32 [-1]' or 'MODE? STRING [1]' for an optional one",
            fix="Write that form, or a dict with Triton's names: name, data_type, dims",
        )
    result: dict[str, Any] = {
        "name": match["name"],
        "data_type": _data_type(declared, match["type"]),
        "dims": _dims(declared, match["dims"]),
    }
    if match["optional"]:
        result["optional"] = True
    return result


def _data_type(declared: str, word: str) -> str:
    found = data_type_of(word)
    if found is not None:
        return found
    words = [name.removeprefix("TYPE_") for name in DATA_TYPES]
    raise DeclarationError(
        where=f"tensor {declared!r}",
        found=f"{word} names no data type{did_you_mean(word, words)}",
        expected=f"one of {', '.join(words)} is needed",
        fix="Write the type as the config spells it, with or without TYPE_",
    )


def _dims(declared: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text.strip() else []
    except ValueError:
        raise DeclarationError(
            where=f"tensor {declared!r}",
            found=f"[{text}] is not a list of sizes",
            expected="whole numbers are needed, -1 for a size that varies",
            fix="Write for example [3, 640, 640] or [-1]",
        ) from None


def dims_agree(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two lists of dims have one length and equal sizes, where -1 equals anything."""
    return len(left) == len(right) and all(a == b or -1 in (a, b) for a, b in zip(left, right, strict=True))


def full_dims(dims: Sequence[int], *, batching: bool) -> tuple[int, ...]:
    """The dims with the batch in front, where the model batches."""
    return (-1, *dims) if batching else tuple(dims)


def ends_agree(left: Sequence[int], left_batching: bool, right: Sequence[int], right_batching: bool) -> bool:
    """Whether Triton lets an ensemble tensor join these two ends (dims, or dims with the batch)."""
    return dims_agree(left, right) or dims_agree(
        full_dims(left, batching=left_batching), full_dims(right, batching=right_batching)
    )


def dims_text(dims: Sequence[int]) -> str:
    """`[3,640,640]`."""
    return f"[{','.join(str(size) for size in dims)}]"
