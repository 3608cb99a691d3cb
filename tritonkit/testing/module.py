"""The module that `import triton_python_backend_utils` gives to one model."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from tritonkit.testing import requests, values
from tritonkit.testing.auto_complete import ModelConfig
from tritonkit.testing.metrics import MetricFamily
from tritonkit.testing.values import DATA_TYPES, TritonModelException

NUMBERS = {number: dtype for number, dtype in enumerate(DATA_TYPES.values(), start=1)} | {1: np.bool_}


def backend_module(
    *, name: str, version_folder: Path, runner: requests.Runner, is_ready: Callable[[str, str], bool]
) -> ModuleType:
    """A module with all that Triton 2.51 has under this name, bound to one model."""
    module = ModuleType("triton_python_backend_utils", "The stand-in of tritonkit.testing.")
    model_request = type("InferenceRequest", (requests.InferenceRequest,), {"runner": staticmethod(runner)})
    model_metrics = type("MetricFamily", (MetricFamily,), {"families": {}})
    vars(module).update(
        InferenceRequest=model_request,
        InferenceResponse=values.InferenceResponse,
        Logger=logger(name),
        MetricFamily=model_metrics,
        ModelConfig=ModelConfig,
        PreferredMemory=values.PreferredMemory,
        Tensor=values.Tensor,
        TritonError=values.TritonError,
        TritonModelException=TritonModelException,
        TRITONSERVER_MEMORY_CPU=values.MemoryType.TRITONSERVER_MEMORY_CPU,
        TRITONSERVER_MEMORY_GPU=values.MemoryType.TRITONSERVER_MEMORY_GPU,
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_START=1,
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_END=2,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL=requests.COMPLETE_FINAL,
        TRITONSERVER_REQUEST_RELEASE_ALL=1,
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE=2,
        TRITON_STRING_TO_NUMPY=dict(DATA_TYPES),
        deserialize_bytes_tensor=deserialize_bytes_tensor,
        get_input_config_by_name=get_input_config_by_name,
        get_input_tensor_by_name=get_input_tensor_by_name,
        get_model_dir=lambda: str(version_folder),
        get_output_config_by_name=get_output_config_by_name,
        get_output_tensor_by_name=get_output_tensor_by_name,
        is_model_ready=lambda model_name, model_version="": is_ready(model_name, model_version),
        load_model=not_here("load_model"),
        numpy_to_triton_type=numpy_to_triton_type,
        serialize_byte_tensor=serialize_byte_tensor,
        triton_string_to_numpy=triton_string_to_numpy,
        triton_to_numpy_type=triton_to_numpy_type,
        unload_model=not_here("unload_model"),
        using_decoupled_model_transaction_policy=using_decoupled_model_transaction_policy,
    )
    return module


def get_input_tensor_by_name(inference_request: requests.InferenceRequest, name: str) -> values.Tensor | None:
    return next((tensor for tensor in inference_request.inputs() if tensor.name() == name), None)


def get_output_tensor_by_name(inference_response: values.InferenceResponse, name: str) -> values.Tensor | None:
    return next((tensor for tensor in inference_response.output_tensors() if tensor.name() == name), None)


def get_input_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((entry for entry in model_config.get("input", []) if entry["name"] == name), None)


def get_output_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((entry for entry in model_config.get("output", []) if entry["name"] == name), None)


def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool:
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def triton_string_to_numpy(triton_type_string: str) -> Any:
    return DATA_TYPES[triton_type_string]


def triton_to_numpy_type(data_type: int) -> Any:
    return NUMBERS.get(data_type)


def numpy_to_triton_type(data_type: Any) -> int | None:
    """The number of a numpy scalar type; numpy's own bool only, as on the server."""
    by_type = {dtype: number for number, dtype in NUMBERS.items()} | {np.bytes_: 13}
    return by_type.get(data_type)


def serialize_byte_tensor(input_tensor: np.ndarray) -> bytes | tuple[()] | None:
    """Each element behind its length in four bytes; None for an array that holds no text."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    items = [item if isinstance(item, bytes) else str(item).encode() for item in input_tensor.ravel()]
    return b"".join(struct.pack("<I", len(item)) + item for item in items)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> np.ndarray:
    """The elements of what `serialize_byte_tensor` made, flat."""
    items, offset = [], 0
    while offset < len(encoded_tensor):
        (length,) = struct.unpack_from("<I", encoded_tensor, offset)
        items.append(bytes(encoded_tensor[offset + 4 : offset + 4 + length]))
        offset += 4 + length
    return np.array(items, dtype=np.object_)


def logger(name: str) -> type:
    """A `Logger` class whose messages go to Python's logging, under `tritonkit.model.<name>`."""
    target = logging.getLogger(f"tritonkit.model.{name}")
    levels = {"INFO": logging.INFO, "WARNING": logging.WARNING, "ERROR": logging.ERROR, "VERBOSE": logging.DEBUG}

    def method(level: int) -> Any:
        def log(message: str) -> None:
            if not isinstance(message, str):
                raise TypeError(f"the logger takes a str, not {message!r}")
            target.log(level, "%s", message)

        return staticmethod(log)

    return type(
        "Logger",
        (),
        {
            **levels,
            "log": staticmethod(lambda message, level=logging.INFO: target.log(level, "%s", message)),
            "log_info": method(logging.INFO),
            "log_warn": method(logging.WARNING),
            "log_error": method(logging.ERROR),
            "log_verbose": method(logging.DEBUG),
        },
    )


def not_here(what: str) -> Callable[..., NoReturn]:
    """A function that says that the stand-in has no model control."""

    def refuse(*arguments: Any, **named: Any) -> NoReturn:
        raise TritonModelException(f"{what}: the stand-in has no model control; give other models to load_model()")

    return refuse
