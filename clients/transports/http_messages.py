"""Requests and responses as HTTP bodies, and back. Pure.

`/infer` takes a JSON header followed by the raw tensors. `/generate_stream` takes plain JSON, where a tensor is a
scalar or a flat list, and answers with server-sent events.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from tritonclient.utils import deserialize_bytes_tensor, triton_to_np_dtype

from clients.arrays import check_size
from clients.errors import ArrayError, EndpointError
from clients.tensors import Request, Response, Tensor
from clients.transports.messages import raw_bytes

HEADER_LENGTH = "Inference-Header-Content-Length"
MAX_BODY_BYTES = 64 * 2**20  # what servers from 25.06 on accept by default (--http-max-input-size)


def infer_body(request: Request) -> tuple[bytes, int]:
    """The body for /infer, and how much of it is the JSON header."""
    check_size(request)
    sent = [(tensor, b"" if tensor.region else raw_bytes(tensor)) for tensor in request.tensors]
    inputs = [_input(tensor, len(raw)) for tensor, raw in sent]
    header = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    return b"".join([header, *(raw for _, raw in sent)]), len(header)


def infer_response(body: bytes, header_length: int | None) -> Response:
    """The Response in the body of an answer of /infer."""
    end = len(body) if header_length is None else header_length
    outputs: dict[str, np.ndarray] = {}
    start = end
    for one in json.loads(body[:end]).get("outputs", ()):
        size = one.get("parameters", {}).get("binary_data_size")
        raw = None if size is None else body[start : start + size]
        outputs[one["name"]] = _listed(one["data"]) if raw is None else _binary(one, raw)
        start += size or 0
    return Response(outputs=outputs)


def generate_body(request: Request) -> bytes:
    """The body for /generate_stream.

    Raises:
        EndpointError: a tensor that JSON can't carry there, or more bytes than servers accept.
    """
    named = {"id": request.id} if request.id else {}
    inputs = {tensor.name: _flat(request.model, tensor) for tensor in request.tensors}
    body = json.dumps({**inputs, **named}).encode()
    if len(body) > MAX_BODY_BYTES:
        found = f"{len(body):,} bytes as JSON"
        advice = "Call it over grpc://, which carries arrays as they are."
        raise EndpointError(f"{request.model} over HTTP", found, f"{MAX_BODY_BYTES:,} is what servers accept", advice)
    return body


def sse_documents(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON documents in a stream of server-sent events, however it was cut into chunks."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield json.loads(line.removeprefix(b"data:"))


def generate_response(document: dict[str, Any]) -> Response:
    """The Response in one event; shapes are lost on this way, so arrays are flat."""
    about = ("id", "model_name", "model_version", "sequence_id", "sequence_start", "sequence_end")
    return Response(outputs={name: _listed(value) for name, value in document.items() if name not in about})


def error_words(body: bytes) -> str:
    """What the server says in a refusal; the body as it is if it isn't Triton's (a proxy's, say)."""
    plain = body.decode(errors="replace").strip()
    try:
        return json.loads(plain.removeprefix("data:"))["error"]
    except (ValueError, KeyError, TypeError):
        return plain


def _input(tensor: Tensor, raw_length: int) -> dict[str, Any]:
    if tensor.region:
        place = {"shared_memory_region": tensor.region, "shared_memory_byte_size": tensor.byte_size}
    else:
        place = {"binary_data_size": raw_length}
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape), "parameters": place}


def _flat(model: str, tensor: Tensor) -> Any:
    where = f"{model}, input {tensor.name} over HTTP"
    if tensor.region:
        found = "its values are in shared memory"
        advice = "Call it over grpc://, or without shared_memory."
        raise EndpointError(where, found, "streamed calls over HTTP can't use it", advice)
    if tensor.array.ndim != 1:
        found = f"shape {list(tensor.shape)}"
        raise EndpointError(where, found, "streamed calls over HTTP carry flat arrays only", "Call it over grpc://.")
    try:
        values = [item.decode() for item in tensor.array] if tensor.datatype == "BYTES" else tensor.array.tolist()
    except UnicodeDecodeError as error:
        found = "bytes that are no text"
        raise EndpointError(where, found, "JSON carries text only", "Call it over grpc://.") from error
    if tensor.array.dtype.kind == "f" and not np.isfinite(tensor.array).all():
        raise ArrayError(where, "NaN or infinity", "JSON carries finite numbers only", "Check how it was computed.")
    return values[0] if len(values) == 1 else values


def _binary(output: dict[str, Any], raw: bytes) -> np.ndarray:
    if output["datatype"] == "BYTES":
        return deserialize_bytes_tensor(raw).reshape(output["shape"])
    return np.frombuffer(raw, dtype=triton_to_np_dtype(output["datatype"])).reshape(output["shape"])


def _listed(value: Any) -> np.ndarray:
    values = value if isinstance(value, list) else [value]
    if not any(isinstance(item, str) for item in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = [item.encode() for item in values]
    return array
