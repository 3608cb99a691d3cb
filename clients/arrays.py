"""Values of every day become tensors, and outputs become text and numbers. Nothing is contacted.

Numbers keep their type: float64 isn't made float32 behind the caller's back. Text goes as UTF-8 in object arrays,
because numpy's own byte strings (dtype S) drop trailing zero bytes and its text (dtype U) has no form on the wire.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from clients.errors import ArrayError
from clients.tensors import MAX_REQUEST_BYTES, Request, Response, Tensor

DATATYPES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
}


def tensor(name: str, value: Any) -> Tensor:
    """The tensor for a value: a numpy array, text, bytes, or a list of text or bytes.

    Raises:
        ArrayError: the value has no form on the wire, or would lose something on the way.
    """
    if isinstance(value, str | bytes):
        value = [value]
    if isinstance(value, list | tuple) and all(isinstance(item, str | bytes) for item in value):
        return Tensor(name=name, datatype="BYTES", array=_bytes_array(name, _objects(value)))
    if not isinstance(value, np.ndarray | np.generic):
        raise ArrayError(name, f"a {type(value).__name__}", "a numpy array, text or bytes is needed")
    return _from_array(name, np.asarray(value))


def text(name: str, value: str) -> Tensor:
    """One string as TYPE_STRING [1]."""
    return tensor(name, [value])


def json_text(name: str, value: Any) -> Tensor:
    """One JSON document as TYPE_STRING [1]; what JSON can't say is refused, NaN included."""
    try:
        return text(name, json.dumps(value, allow_nan=False, ensure_ascii=False))
    except (TypeError, ValueError) as error:
        raise ArrayError(name, str(error), "values that JSON can hold are needed") from error


def number(name: str, value: float) -> Tensor:
    """One number as TYPE_FP32 [1]."""
    return Tensor(name=name, datatype="FP32", array=np.array([value], dtype=np.float32))


def check_size(request: Request) -> None:
    """Raises ArrayError for a request that no setting can carry."""
    sizes = {tensor.name: tensor.byte_size for tensor in request.tensors if not tensor.region}
    if sum(sizes.values()) > MAX_REQUEST_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        found = f"the request has {sum(sizes.values()):,} bytes"
        advice = "Send it in parts, or use shared_memory=True with a server on the same machine."
        raise ArrayError(f"{request.model}, input {largest}", found, f"{MAX_REQUEST_BYTES:,} is the limit", advice)


def read_text(response: Response, name: str) -> str | None:
    """The one string of an output; None if the response doesn't carry it."""
    array = response.outputs.get(name)
    if array is None:
        return None
    try:
        return array.reshape(-1)[0].decode()
    except (IndexError, AttributeError, UnicodeDecodeError) as error:
        raise ArrayError(f"output {name}", f"{array!r}", "one string in UTF-8 is expected") from error


def read_number(response: Response, name: str) -> int:
    """The one whole number of an output; 0 if the response doesn't carry it."""
    array = response.outputs.get(name)
    return 0 if array is None else int(array.reshape(-1)[0])


def read_json(response: Response, name: str) -> Any:
    """The JSON document of an output; None if the response doesn't carry it."""
    document = read_text(response, name)
    try:
        return None if document is None else json.loads(document)
    except ValueError as error:
        raise ArrayError(f"output {name}", f"{document!r}: {error}", "JSON is expected") from error


def need(value: Any, model: str, name: str) -> Any:
    """The value, or ArrayError if the model left that output out."""
    if value is None:
        raise ArrayError(f"{model}, output {name}", "not in the answer", "the model is expected to send it")
    return value


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, without those left at None."""
    return {name: value for name, value in options.items() if value is not None}


def _from_array(name: str, array: np.ndarray) -> Tensor:
    if array.dtype.kind == "S":
        advice = "Use dtype=object with bytes."
        raise ArrayError(name, f"dtype {array.dtype} drops zero bytes at the end", "object is needed", advice)
    if array.dtype.kind == "U":
        advice = "Use .astype(object), or pass a list of str."
        raise ArrayError(name, f"dtype {array.dtype} has no form on the wire", "object is needed", advice)
    if array.dtype == object:
        return Tensor(name=name, datatype="BYTES", array=_bytes_array(name, array))
    if array.dtype.name not in DATATYPES:
        raise ArrayError(name, f"dtype {array.dtype}", f"one of {', '.join(DATATYPES)} or object is needed")
    native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape)
    return Tensor(name=name, datatype=DATATYPES[array.dtype.name], array=native)


def _objects(items: list | tuple) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _bytes_array(name: str, array: np.ndarray) -> np.ndarray:
    out = np.empty(array.shape, dtype=object)
    for index, item in np.ndenumerate(array):
        out[index] = _encoded(name, item)
    return out


def _encoded(name: str, item: object) -> bytes:
    if isinstance(item, bytes):
        return item
    if not isinstance(item, str):
        raise ArrayError(name, f"an element is a {type(item).__name__}", "text or bytes is needed")
    try:
        return item.encode()
    except UnicodeEncodeError as error:
        found = f"character {error.start} ({item[error.start]!r}) is no text in UTF-8"
        raise ArrayError(name, found, "valid Unicode is needed", "Check the encoding it was read with.") from error
