"""What a served model takes, read from its config; inputs of any model are checked against it before anything is sent.

The server checks the same, but not over `/generate_stream`, where an input with a misspelled name silently becomes a
request parameter; and the leading batch dimension, which a batching model wants and a caller with one item forgets,
is added here.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clients.arrays import tensor
from clients.errors import ArrayError, EndpointError
from clients.tensors import Request, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input as the config has it; dims without the batch dimension, -1 is any size."""

    datatype: str
    dims: tuple[int, ...]
    is_optional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A served model: its inputs, its largest batch (0: it doesn't batch), whether it streams.

    And what else its config tells: an ensemble's steps, its parameters.
    """

    model: str
    inputs: Mapping[str, Input]
    max_batch_size: int
    is_decoupled: bool
    steps: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)


def signature_of(config: Any) -> Signature:
    """The signature in a ModelConfig message, as a server sends it (after auto-completion)."""
    from tritonclient.grpc.model_config_pb2 import DataType

    inputs = {
        one.name: Input(
            datatype=DataType.Name(one.data_type).removeprefix("TYPE_").replace("STRING", "BYTES"),
            dims=tuple(one.dims),
            is_optional=one.optional,
        )
        for one in config.input
    }
    return Signature(
        model=config.name,
        inputs=inputs,
        max_batch_size=config.max_batch_size,
        is_decoupled=config.model_transaction_policy.decoupled,
        steps=tuple(step.model_name for step in config.ensemble_scheduling.step),
        parameters={name: value.string_value for name, value in config.parameters.items()},
    )


def request_for(signature: Signature, values: Mapping[str, Any]) -> Request:
    """The request with these values as inputs.

    Raises:
        ArrayError: an unknown or missing name, another datatype, or a shape that can't fit.
    """
    tensors = tuple(_fitting(signature, tensor(name, value)) for name, value in values.items())
    missing = [name for name, one in signature.inputs.items() if not one.is_optional and name not in values]
    if missing:
        raise ArrayError(signature.model, f"no {' and no '.join(missing)}", "every input that isn't optional is needed")
    return Request(model=signature.model, tensors=tensors)


def check_answers_once(signature: Signature) -> None:
    """Raises EndpointError for a model that streams: the server refuses a plain infer of it."""
    if signature.is_decoupled:
        found = "the model is decoupled: it answers any number of times"
        raise EndpointError(signature.model, found, "a stream is needed", "Call stream(), not infer().")


def _fitting(signature: Signature, given: Tensor) -> Tensor:
    where = f"{signature.model}, input {given.name}"
    wanted = signature.inputs.get(given.name)
    if wanted is None:
        raise _unknown(signature, given.name)
    if given.datatype != wanted.datatype:
        raise ArrayError(where, f"{given.datatype} ({given.array.dtype})", f"{wanted.datatype} is needed")
    if not signature.max_batch_size:
        return given if _agrees(given.shape, wanted.dims) else _refuse(where, given, wanted, batching="")
    if _agrees(given.shape, wanted.dims):
        given = Tensor(name=given.name, datatype=given.datatype, array=given.array[np.newaxis])
    batching = f", or the same after a batch of 1 to {signature.max_batch_size}"
    fits = len(given.shape) == len(wanted.dims) + 1 and _agrees(given.shape[1:], wanted.dims)
    if not fits or not 1 <= given.shape[0] <= signature.max_batch_size:
        return _refuse(where, given, wanted, batching)
    return given


def _agrees(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return len(shape) == len(dims) and all(dim in (-1, size) for size, dim in zip(shape, dims, strict=True))


def _refuse(where: str, given: Tensor, wanted: Input, batching: str) -> Tensor:
    raise ArrayError(where, f"shape {list(given.shape)}", f"{list(wanted.dims)}{batching} is needed")


def _unknown(signature: Signature, name: str) -> ArrayError:
    folded = {known.casefold(): known for known in signature.inputs}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    advice = f"Did you mean {folded[close[0]]}?" if close else ""
    expected = f"{', '.join(signature.inputs)} are its inputs"
    return ArrayError(signature.model, f"no input {name}", expected, advice)
