"""Shapes that end a Python model's process inside Triton, before any code of the model sees the request.

Triton (seen on 2.51) counts a tensor's bytes in 64 bits. A count that wraps to what was sent is let through, and numpy
then refuses the shape where nothing catches it. No config can forbid them to an input with a variable size. So the
10,000 odd requests hold none of them: they are sent by themselves, and what counts is that the model comes back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from tritonclient.grpc import service_pb2

SIZES = {"FP32": 4, "INT32": 4, "INT64": 8, "UINT8": 1, "BOOL": 1, "FP16": 2, "FP64": 8, "BYTES": 0}
LARGEST_SIZE = 2**62
BACK_WITHIN_S = 300.0


def is_deadly(shape: Sequence[int], datatype: str) -> bool:
    """Whether the bytes of such a tensor, without its sizes of 0, are too many for 63 bits, or a size is negative.

    (A negative size is refused where the count is negative, too, or the size is -1.)
    """
    if min(shape, default=0) < 0:
        return math.prod(shape) >= 0 and -1 not in shape
    return math.prod(size for size in shape if size) * SIZES[datatype] >= 2**63


def deadly_shape(dims: Sequence[int], datatype: str) -> list[int] | None:
    """A shape that such an input lets through, whose bytes wrap to 0; None if there is none."""
    if -1 not in dims or not SIZES[datatype]:
        return None
    shape = [1 if size < 0 else size for size in dims]
    bytes_of_one = math.prod(shape) * SIZES[datatype]
    size = 2**64 // (bytes_of_one & -bytes_of_one)
    shape[list(dims).index(-1)] = size
    return shape if size <= LARGEST_SIZE else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a deadly request did: the answer's words, and how long it took until the model answered again."""

    model: str
    tensor: str
    shape: tuple[int, ...]
    words: str
    back_after_s: float


def send_deadly(
    stub: Callable[[], Any], configs: Iterable[Any], datatype_of: Callable[[Any], str], limit_s: float
) -> Iterator[Ended]:
    """One deadly request after the other, to each input of a Python model that lets one through.

    Args:
        stub: makes the way to the server: its gRPC service.

    Raises:
        SystemExit: the model does not answer again.
    """
    for config in configs:
        if config.backend != "python" or config.max_batch_size:
            continue
        for given in config.input:
            shape = deadly_shape(given.dims, datatype_of(given))
            if shape is None:
                continue
            words = _ask(stub(), config, given.name, shape, datatype_of, limit_s)
            began = time.monotonic()
            while _is_away(_ask(stub(), config, "", [], datatype_of, limit_s)):
                if time.monotonic() - began > BACK_WITHIN_S:
                    raise SystemExit(f"{config.name} does not come back within {BACK_WITHIN_S:g} s")
                time.sleep(0.2)
            back_after_s = time.monotonic() - began
            yield Ended(
                model=config.name, tensor=given.name, shape=tuple(shape), words=words, back_after_s=back_after_s
            )


def _is_away(words: str) -> bool:
    return words.startswith(("INTERNAL", "UNAVAILABLE", "NOT_FOUND", "DEADLINE_EXCEEDED"))


def _ask(stub: Any, config: Any, name: str, shape: list[int], datatype_of: Callable[[Any], str], limit_s: float) -> str:
    """Ask with this shape and no content for one input, zeros for the others; status and words of the answer."""
    request = service_pb2.ModelInferRequest(model_name=config.name)
    for given in config.input:
        if given.optional:
            continue
        datatype = datatype_of(given)
        sizes = shape if given.name == name else [1 if size < 0 else size for size in given.dims]
        request.inputs.add(name=given.name, datatype=datatype, shape=sizes)
        content = b"" if given.name == name else bytes(math.prod(sizes) * SIZES[datatype])
        request.raw_input_contents.append(content)
    try:
        stub.ModelInfer(request, timeout=limit_s)
    except grpc.RpcError as error:
        return f"{error.code().name}: {error.details()}"
    return "answered"
