"""Names, types and dims of an ONNX file's inputs and outputs, without reading its weights.

In: a file. Out: an `OnnxFile`. The file is walked as protobuf's wire format: what is not asked for is skipped by its
length, so a file of gigabytes takes milliseconds, and a broken one gives a sentence. Field numbers are those of ONNX's
own `onnx.proto`.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# TensorProto.DataType to Triton's word.
_TYPES = {
    1: "TYPE_FP32",
    2: "TYPE_UINT8",
    3: "TYPE_INT8",
    4: "TYPE_UINT16",
    5: "TYPE_INT16",
    6: "TYPE_INT32",
    7: "TYPE_INT64",
    8: "TYPE_STRING",
    9: "TYPE_BOOL",
    10: "TYPE_FP16",
    11: "TYPE_FP64",
    12: "TYPE_UINT32",
    13: "TYPE_UINT64",
    16: "TYPE_BF16",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxTensor:
    """One input or output. `dims` holds -1 where a size varies; None where the file gives no shape at all."""

    name: str
    data_type: str | None
    dims: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxFile:
    """What an ONNX file says of itself; `problem` says why it is none, `is_read` is False where nobody looked."""

    inputs: tuple[OnnxTensor, ...] = ()
    outputs: tuple[OnnxTensor, ...] = ()
    ir_version: int = 0
    opset: int = 0
    problem: str = ""
    is_read: bool = True


class _Broken(Exception):
    pass


Bytes = bytes | mmap.mmap
Span = tuple[int, int]


def read_onnx(path: Path) -> OnnxFile:
    """What the file says."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _model(data)
    except (_Broken, IndexError):
        return OnnxFile(problem="this is not an ONNX file, or it is cut off")
    except (OSError, ValueError) as error:
        return OnnxFile(problem=str(error) or "it cannot be read")


def _model(data: Bytes) -> OnnxFile:
    ir_version, opset = 0, 0
    graph: Span | None = None
    for number, value in _fields(data, (0, len(data))):
        if number == 1 and isinstance(value, int):
            ir_version = value
        elif number == 7 and not isinstance(value, int):
            graph = value
        elif number == 8 and not isinstance(value, int):
            found = dict(_fields(data, value))
            domain = _text(data, found.get(1))
            if domain in ("", "ai.onnx"):
                version = found.get(2, 0)
                opset = version if isinstance(version, int) else 0
    if graph is None:
        raise _Broken
    inputs, outputs, initializers = [], [], set()
    for number, value in _fields(data, graph):
        if isinstance(value, int):
            continue
        if number == 11:
            inputs.append(_tensor(data, value))
        elif number == 12:
            outputs.append(_tensor(data, value))
        elif number == 5:
            initializers.add(_initializer_name(data, value))
    return OnnxFile(
        inputs=tuple(one for one in inputs if one.name not in initializers),
        outputs=tuple(outputs),
        ir_version=ir_version,
        opset=opset,
    )


def _initializer_name(data: Bytes, span: Span) -> str:
    for number, value in _fields(data, span):
        if number == 8:
            return _text(data, value)
    return ""


def _tensor(data: Bytes, span: Span) -> OnnxTensor:
    fields = dict(_fields(data, span))
    kind = fields.get(2)
    tensor = dict(_fields(data, kind)).get(1) if isinstance(kind, tuple) else None
    typed: Mapping[int, int | Span] = dict(_fields(data, tensor)) if isinstance(tensor, tuple) else {}
    element, shape = typed.get(1), typed.get(2)
    return OnnxTensor(
        name=_text(data, fields.get(1)),
        data_type=_TYPES.get(element) if isinstance(element, int) else None,
        dims=tuple(_dims(data, shape)) if isinstance(shape, tuple) else None,
    )


def _dims(data: Bytes, span: Span) -> Iterator[int]:
    for number, value in _fields(data, span):
        if number == 1 and isinstance(value, tuple):
            size = dict(_fields(data, value)).get(1)
            yield size if isinstance(size, int) and size > 0 else -1


def _text(data: Bytes, value: int | Span | None) -> str:
    return bytes(data[value[0] : value[1]]).decode("utf-8", "replace") if isinstance(value, tuple) else ""


def _fields(data: Bytes, span: Span) -> Iterator[tuple[int, int | Span]]:
    """(field number, number or span) of every field of the message in `span`."""
    at, end = span
    while at < end:
        tag, at = _varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at, end)
            yield number, value
        elif wire == 2:
            length, at = _varint(data, at, end)
            if at + length > end:
                raise _Broken
            yield number, (at, at + length)
            at += length
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise _Broken
    if at != end:
        raise _Broken


def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    result = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result if result < 2**63 else result - 2**64), at
        shift += 7
    raise _Broken
