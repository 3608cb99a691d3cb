"""Tensors, responses and errors as a model.py sees them, under `triton_python_backend_utils`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

Kind = TypeVar("Kind")

DATA_TYPES: dict[str, Any] = {
    "TYPE_BOOL": bool,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}
# dtype -> the name on the wire
DATATYPES = {np.dtype(dtype): name.removeprefix("TYPE_") for name, dtype in DATA_TYPES.items()}
DATATYPES[np.dtype(np.object_)] = "BYTES"


def as_on_server(kind: type[Kind]) -> type[Kind]:
    """The class under the server's name for its module, which shows in messages."""
    kind.__module__ = "c_python_backend_utils"
    return kind


@as_on_server
class TritonModelException(Exception):
    """What `triton_python_backend_utils` raises when a model uses it wrongly."""


class MemoryType(enum.IntEnum):
    """Where a tensor lies."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


@as_on_server
class PreferredMemory:
    """Where the answer of a BLS request should lie; the stand-in has only the CPU."""

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None:
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


class GpuArray(np.ndarray):
    """An array of which a test says that it lies in a GPU's memory."""


def on_gpu(array: np.ndarray) -> GpuArray:
    """The array as if it lay on a GPU: a model sees a tensor with `is_cpu()` false, which it can only take by DLPack.

    It lies in the host's memory nevertheless, so code for GPUs can be run without one.
    """
    return np.array(array, order="C").view(GpuArray)


@as_on_server
class Tensor:
    """A named array. As on the server, `as_numpy()` of a tensor that the model made is the very array it was given."""

    def __init__(self, name: str, array: np.ndarray) -> None:
        if not isinstance(name, str) or not isinstance(array, np.ndarray):
            raise TypeError(f"Tensor(name: str, array: numpy.ndarray) was called with {name!r}, {array!r}")
        if datatype_of(array) is None or not array.dtype.isnative:
            raise TritonModelException("NumPy dtype is not supported.")
        self._name = name
        self._array = array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def name(self) -> str:
        return self._name

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def as_numpy(self) -> np.ndarray:
        if not self.is_cpu():
            raise TritonModelException("Tensor is stored in GPU and cannot be converted to NumPy.")
        return self._array

    def is_cpu(self) -> bool:
        return not isinstance(self._array, GpuArray)

    def triton_dtype(self) -> int:
        """Raises: Triton 2.51 has this method and cannot convert what it returns. Use `as_numpy().dtype`."""
        raise TypeError("Unable to convert function return value to a Python type! Use as_numpy().dtype instead.")

    @staticmethod
    def from_dlpack(name: str, source: Any) -> Tensor:
        """A tensor over what `source` shares: a capsule, or an object with `__dlpack__`."""
        if not hasattr(source, "__dlpack__"):
            source = _Capsule(source)
        return Tensor(name, np.from_dlpack(source))

    def to_dlpack(self) -> Any:
        return self.__dlpack__()

    def __dlpack__(self, stream: Any = None) -> Any:
        return np.asarray(self._array).__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1 if self.is_cpu() else 2, 0)


class _Capsule:
    """A bare DLPack capsule in the form that numpy takes."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, stream: Any = None) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def datatype_of(array: np.ndarray) -> str | None:
    """The name of an array's type on the wire; None for a type that Triton has not."""
    return "BYTES" if array.dtype.kind == "S" else DATATYPES.get(array.dtype.newbyteorder("="))


class ErrorCode(enum.IntEnum):
    """The codes of an error."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7

    def __str__(self) -> str:
        return f"__ErrorCode.{self.name}"

    def __repr__(self) -> str:
        return f"<__ErrorCode.{self.name}: {self.value}>"


@as_on_server
class TritonError:
    """An error to answer with."""

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        if not isinstance(message, str) or not isinstance(code, ErrorCode):
            raise TypeError(f"TritonError(message: str, code: TritonError.XXX) was called with {message!r}, {code!r}")
        self._message = message
        self._code = code

    def message(self) -> str:
        return self._message

    def code(self) -> ErrorCode:
        return self._code


@as_on_server
class InferenceResponse:
    """One answer: tensors, or an error (with an error the tensors are dropped)."""

    def __init__(self, output_tensors: Sequence[Tensor] = (), error: TritonError | None = None) -> None:
        if not isinstance(output_tensors, Sequence) or not all(isinstance(each, Tensor) for each in output_tensors):
            raise TypeError(f"InferenceResponse(output_tensors: list of Tensor) was called with {output_tensors!r}")
        if error is not None and not isinstance(error, TritonError):
            raise TypeError(f"InferenceResponse(error: TritonError) was called with {error!r}")
        self._tensors = list(output_tensors)
        self._error = error

    def output_tensors(self) -> list[Tensor]:
        return self._tensors

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> TritonError | None:
        return self._error
