"""Inputs of any served model: files, rows of a JSONL file, or random values in the shapes that the model takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient.utils import triton_to_np_dtype

from clients.audio import load_samples
from clients.connection import transport_for
from clients.endpoint import endpoint
from clients.image import load_image
from clients.signature import Input, Signature, request_for
from load.errors import LoadError
from load.items import SOUNDS, files, mixed
from load.triton import CALL_S, Item

WORDS = "The quick brown fox jumps over the lazy dog"


def signature_at(url: str, model: str) -> Signature:
    """What a served model takes."""
    with closing(transport_for(endpoint(url))) as transport:
        return transport.signature(model, CALL_S)


def random_items(
    signature: Signature, *, shapes: Mapping[str, Sequence[int]], batch: int = 1, count: int = 8, seed: int = 0
) -> tuple[Item, ...]:
    """Items of random values: floats of 0 to 1, whole numbers of 0 to 9, text.

    Args:
        shapes: of inputs whose dims are not fixed, without the batch dimension.
        batch: of a model that batches.
        count: how many different items.

    Raises:
        LoadError: an input has no fixed shape and none was given.
    """
    random = np.random.default_rng(seed)
    needed = {name: one for name, one in signature.inputs.items() if not one.is_optional or name in shapes}
    leading = (batch,) if signature.max_batch_size else ()
    made = []
    for number in range(count):
        values = {
            name: _random(random, one, (*leading, *_shape(signature.model, name, one, shapes)))
            for name, one in needed.items()
        }
        made.append(Item(name=f"random {number}", request=request_for(signature, values)))
    return tuple(made)


def file_items(signature: Signature, paths: Mapping[str, Sequence[Path]]) -> tuple[Item, ...]:
    """Items of files and folders by input.

    A .npy file is the array in it, a sound file its samples if the input takes FP32, any other file its bytes: as UINT8
    [n], or as one text.
    """
    named = {
        name: [(one.name, _value(signature.inputs.get(name), one)) for one in files(given, ())]
        for name, given in paths.items()
    }
    return tuple(
        Item(
            name=" + ".join(label for label, _ in together),
            request=request_for(signature, {name: value for name, (_, value) in zip(named, together, strict=True)}),
        )
        for together in mixed(*named.values())
    )


def row_items(signature: Signature, path: Path) -> tuple[Item, ...]:
    """The items in a JSONL file: inputs by name, as lists, numbers and text; numbers get the type the model takes.

    Raises:
        LoadError: a line that is no JSON object, or no lines.
    """
    made = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            values = {name: _typed(signature.inputs.get(name), value) for name, value in row.items()}
        except (ValueError, AttributeError, TypeError) as error:
            expected = "a JSON object of inputs by name is needed"
            raise LoadError(f"{path}, line {number}", str(error), expected) from error
        made.append(Item(name=f"line {number}", request=request_for(signature, values)))
    if not made:
        raise LoadError(str(path), "no rows", "at least one JSON object is needed")
    return tuple(made)


def _shape(model: str, name: str, one: Input, shapes: Mapping[str, Sequence[int]]) -> Sequence[int]:
    shape = shapes.get(name, one.dims)
    if any(dim < 1 for dim in shape):
        advice = (
            f"Give one: --shape {name}:{','.join('8' if dim < 1 else str(dim) for dim in one.dims)}, or --data FILE."
        )
        raise LoadError(f"{model}, input {name}", f"dims {list(one.dims)}", "a fixed shape is needed", advice)
    return shape


def _random(random: np.random.Generator, one: Input, shape: Sequence[int]) -> np.ndarray:
    if one.datatype == "BYTES":
        return np.full(shape, WORDS, dtype=object)
    dtype = np.dtype(triton_to_np_dtype(one.datatype))
    if dtype.kind == "f":
        return random.random(shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 10, size=shape).astype(dtype)


def _value(one: Input | None, path: Path) -> Any:
    if path.suffix == ".npy":
        return np.load(path)
    if one and one.datatype == "FP32" and path.suffix.lower() in SOUNDS:
        return load_samples(path)
    return [path.read_bytes()] if one and one.datatype == "BYTES" else load_image(path)


def _typed(one: Input | None, value: Any) -> Any:
    if one is None or one.datatype == "BYTES":  # an unknown name is left to the client to refuse
        return value
    array = np.asarray(value, dtype=triton_to_np_dtype(one.datatype))
    return array.reshape(1) if array.ndim == 0 else array
