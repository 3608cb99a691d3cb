"""The tensors of an ONNX file in Triton's words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# ONNX Runtime's word for an element -> Triton's data_type.
DATA_TYPES = {
    "bool": "TYPE_BOOL",
    "uint8": "TYPE_UINT8",
    "uint16": "TYPE_UINT16",
    "uint32": "TYPE_UINT32",
    "uint64": "TYPE_UINT64",
    "int8": "TYPE_INT8",
    "int16": "TYPE_INT16",
    "int32": "TYPE_INT32",
    "int64": "TYPE_INT64",
    "float16": "TYPE_FP16",
    "float": "TYPE_FP32",
    "double": "TYPE_FP64",
    "string": "TYPE_STRING",
    "bfloat16": "TYPE_BF16",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTensor:
    """One input or output of an ONNX file. `shape` is complete, batch dimension included; -1 is variable."""

    name: str
    data_type: str
    shape: tuple[int, ...]


def file_tensors(arguments: Iterable[Any]) -> dict[str, FileTensor]:
    """Name -> tensor, sorted by name, from `session.get_inputs()` or `get_outputs()`.

    Raises:
        ValueError: one is a sequence, a map or an optional, which no Triton tensor can be.
    """
    return {argument.name: file_tensor(argument) for argument in sorted(arguments, key=lambda each: str(each.name))}


def file_tensor(argument: Any) -> FileTensor:
    """The tensor that one of ONNX Runtime's node arguments describes."""
    if not argument.type.startswith("tensor("):
        raise ValueError(f"Unsupported ONNX Type '{argument.type}' for I/O '{argument.name}', expected a tensor.")
    element = argument.type.removeprefix("tensor(").removesuffix(")")
    shape = tuple(size if isinstance(size, int) else -1 for size in argument.shape)
    return FileTensor(name=argument.name, data_type=DATA_TYPES.get(element, "TYPE_INVALID"), shape=shape)


def shape_text(shape: Iterable[int]) -> str:
    """A shape as the server writes it: [-1,3,224,224]."""
    return f"[{','.join(map(str, shape))}]"
