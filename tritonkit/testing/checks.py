"""What is checked about requests (as the server does, in its words) and about answers (which it does not)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tritonkit.testing.errors import RequestRefused, RuleBroken
from tritonkit.testing.values import InferenceResponse, Tensor, datatype_of

Config = dict[str, Any]

BATCH_NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each "
    "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting "
    "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
)


def check_request(config: Config, tensors: Mapping[str, np.ndarray], requested: Collection[str]) -> None:
    """Return if the server would hand this request to the model.

    Raises:
        RequestRefused: it would not.
    """
    model = config["name"]
    for name in requested:
        if name not in [entry["name"] for entry in config["output"]]:
            raise RequestRefused(f"unexpected inference output '{name}' for model '{model}'")
    entries = {entry["name"]: entry for entry in config["input"]}
    for name in tensors:
        if name not in entries:
            raise RequestRefused(f"unexpected inference input '{name}' for model '{model}'")
    check_all_there(model, entries, tensors)
    for name, array in tensors.items():
        check_input(config, entries[name], array)
    batch_sizes = {array.shape[0] for array in tensors.values()} if config["max_batch_size"] else set()
    if len(batch_sizes) > 1:
        raise RequestRefused(f"[request id: <id_unknown>] input batch size does not match other inputs for '{model}'")
    if batch_sizes and batch_sizes.pop() > config["max_batch_size"]:
        raise RequestRefused(
            f"[request id: <id_unknown>] inference request batch-size must be <= {config['max_batch_size']} "
            f"for '{model}'"
        )


def check_all_there(model: str, entries: Mapping[str, Config], tensors: Mapping[str, np.ndarray]) -> None:
    """Every input that is not optional was sent."""
    required = [name for name, entry in entries.items() if not entry["optional"]]
    missing = [name for name in required if name not in tensors]
    if not missing:
        return
    if len(required) == len(entries):
        expected = f"expected {len(entries)} inputs but got {len(tensors)} inputs"
    else:
        expected = f"expected number of inputs between {len(required)} and {len(entries)} but got {len(tensors)} inputs"
    raise RequestRefused(
        f"[request id: <id_unknown>] {expected} for model '{model}'. Got input(s) [{quoted(sorted(tensors))}], "
        f"but missing required input(s) [{quoted(missing)}]. Please provide all required input(s)."
    )


def check_input(config: Config, entry: Config, array: np.ndarray) -> None:
    """Type and shape of one input."""
    expected = wire_name(entry)
    if datatype_of(array) != expected:
        raise RequestRefused(
            f"[request id: <id_unknown>] inference input '{entry['name']}' data-type is '{datatype_of(array)}', "
            f"but model '{config['name']}' expects '{expected}'"
        )
    shape = full_shape(config, entry)
    if not fits(array.shape, shape):
        raise RequestRefused(
            f"[request id: <id_unknown>] unexpected shape for input '{entry['name']}' for model '{config['name']}'. "
            f"Expected {text(shape)}, got {text(array.shape)}. {BATCH_NOTE if config['max_batch_size'] else ''}"
        )


def check_response(config: Config, response: InferenceResponse, batch_size: int | None) -> None:
    """Return if every tensor of an answer is one that the configuration declares.

    Raises:
        RuleBroken: a name, a type, a shape, or a name twice.
    """
    entries = {entry["name"]: entry for entry in config["output"]}
    seen: set[str] = set()
    for tensor in response.output_tensors():
        name = tensor.name()
        if name not in entries:
            raise RuleBroken(
                f"{config['name']}: output '{name}' is not in the configuration, which has: {', '.join(entries)}. "
                "The server drops it without a word"
            )
        if name in seen:
            raise RuleBroken(f"{config['name']}: output '{name}' is twice in one response; clients cannot read it")
        seen.add(name)
        check_output(config, entries[name], tensor, batch_size)


def check_output(config: Config, entry: Config, tensor: Tensor, batch_size: int | None) -> None:
    """Type and shape of one output."""
    label = f"{config['name']}: output '{entry['name']}'"
    array = tensor.as_numpy()
    if datatype_of(array) != wire_name(entry):
        raise RuleBroken(
            f"{label} has type {datatype_of(array)}, the configuration says {wire_name(entry)}. "
            "The server passes it on, and the next step fails"
        )
    shape = full_shape(config, entry)
    if not fits(array.shape, shape):
        raise RuleBroken(
            f"{label} has shape {text(array.shape)}, the configuration says {text(shape)}. "
            "The server passes it on, and the next step fails"
        )
    if batch_size is not None and array.shape[0] != batch_size:
        raise RuleBroken(f"{label} has {array.shape[0]} rows in front, the request had {batch_size}")


def full_shape(config: Config, entry: Config) -> list[int]:
    """The shape of a tensor as a model sees it: dims, or its reshape, behind a free batch dimension when batching."""
    dims = entry.get("reshape", {}).get("shape", entry["dims"])
    return [-1, *dims] if config["max_batch_size"] > 0 else list(dims)


def fits(shape: Sequence[int], pattern: Sequence[int]) -> bool:
    """Whether a shape is one of those that a pattern with -1 allows."""
    return len(shape) == len(pattern) and all(want in (-1, size) for size, want in zip(shape, pattern, strict=True))


def wire_name(entry: Config) -> str:
    """The type of a tensor as the protocol calls it."""
    name = str(entry["data_type"]).removeprefix("TYPE_")
    return "BYTES" if name == "STRING" else name


def text(shape: Sequence[int]) -> str:
    """A shape as the server writes it."""
    return f"[{','.join(map(str, shape))}]"


def quoted(names: Sequence[str]) -> str:
    """Names as the server lists them."""
    return ",".join(f"'{name}'" for name in names)
