"""Bytes of a tensor in a usual request.

In: what a config declares, and what its model or the person says about sizes that vary. Out: bytes, and whether a size
had to be guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from builder.datatypes import DATA_TYPES
from builder.model import Model

STRING_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes of a tensor, and whether a size that varies was guessed (taken as 1)."""

    bytes: int
    guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Usual sizes by (model, tensor); what a person gives by a tensor's name alone goes before them."""

    usual: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    given: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def of(self, model: str, tensor: Mapping[str, Any]) -> Size:
        """The size of a tensor as its model's config declares it, without a batch."""
        name = tensor.get("name", "")
        dims: Sequence[int] = tensor.get("dims", ())
        said = self.given.get(name) or self.usual.get((model, name))
        if tensor.get("data_type") == "TYPE_STRING":
            return Size(bytes=4 + (prod(said) if said else STRING_BYTES))
        width = DATA_TYPES[tensor["data_type"]].byte_size if tensor.get("data_type") in DATA_TYPES else 4
        if said and (len(said) == len(dims) or -1 in dims):
            return Size(bytes=prod(said) * width)
        return Size(bytes=prod(max(size, 1) for size in dims) * width, guessed=-1 in dims)

    def best(self, ends: Iterable[tuple[str, Mapping[str, Any]]]) -> Size:
        """The size that the ends of one edge agree on: one that was not guessed, the largest of these."""
        found = [self.of(model, tensor) for model, tensor in ends]
        known = [one for one in found if not one.guessed]
        return max(known or found, key=lambda one: one.bytes, default=Size(bytes=0, guessed=True))


def sizes_of(models: Iterable[Model], given: Mapping[str, tuple[int, ...]] | None = None) -> Sizes:
    """The usual sizes of some models."""
    usual = {
        (model.name, name): tuple(dims)
        for model in models
        for name, dims in model.usual.items()
        if not isinstance(dims, int)
    }
    return Sizes(usual=usual, given=given or {})
