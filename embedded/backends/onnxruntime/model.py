"""A backend named `onnxruntime` for Triton servers that have none: ONNX files, from Python.

It lies beside the python backend of the embedded server. A repository with `backend: "onnxruntime"` loads there with
this one, and on NVIDIA's images with Triton's own; or with this one on the vLLM image, which has none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import ort_batch
import ort_config
import triton_python_backend_utils as pb_utils
from ort_tensors import FileTensor, file_tensors


class TritonPythonModel:
    """One instance of one ONNX model."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """The configuration with what it does not say taken from the file."""
        config = auto_complete_model_config.as_dict()
        if ort_config.is_complete(config):
            return auto_complete_model_config
        from ort_session import onnx_file, open_session

        session = open_session(onnx_file(version_folder(), config), config)
        inputs, outputs = file_tensors(session.get_inputs()), file_tensors(session.get_outputs())
        config.update(ort_config.complete(config, inputs, outputs))
        return auto_complete_model_config

    def initialize(self, args: dict[str, str]) -> None:
        from ort_session import onnx_file, open_session

        config = json.loads(args["model_config"])
        folder = Path(args["model_repository"], args["model_version"])
        gpu = int(args["model_instance_device_id"]) if args["model_instance_kind"] == "GPU" else None
        self.session = open_session(onnx_file(folder, config), config, gpu)
        self.inputs = file_tensors(self.session.get_inputs())
        self.outputs = file_tensors(self.session.get_outputs())
        initializers = file_tensors(self.session.get_overridable_initializers())
        ort_config.check(config, self.inputs, self.outputs, initializers)
        self.inputs |= initializers
        self.batches = config["max_batch_size"] > 0
        self.output_names = [entry["name"] for entry in config["output"]]

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request; a request that cannot be read fails alone."""
        responses: list[Any] = [None] * len(requests)
        readable: dict[int, dict[str, np.ndarray]] = {}
        for index, request in enumerate(requests):
            try:
                readable[index] = self.arrays(request)
            except ValueError as error:
                responses[index] = failed(str(error), pb_utils.TritonError.INVALID_ARG)
        groups = [list(readable)] if self.batches else [[index] for index in readable]
        for group in groups:
            if group:
                self.run_group(group, requests, readable, responses)
        return responses

    def arrays(self, request: Any) -> dict[str, np.ndarray]:
        """The inputs of one request, as views of the server's shared memory where the type allows it."""
        return {tensor.name(): for_file(self.inputs[tensor.name()], tensor.as_numpy()) for tensor in request.inputs()}

    def run_group(
        self, group: list[int], requests: list[Any], readable: dict[int, dict[str, np.ndarray]], responses: list[Any]
    ) -> None:
        """Fill in the responses of these requests by one run, or one run each if that fails: only the guilty fail."""
        asked = [requests[index].requested_output_names() for index in group]
        names = [name for name in self.output_names if any(name in each for each in asked)]
        try:
            answers = self.run([readable[index] for index in group], names)
        except Exception as error:  # ONNX Runtime's errors have no common class of their own
            if len(group) > 1:
                for index in group:
                    self.run_group([index], requests, readable, responses)
            else:
                responses[group[0]] = failed(f"onnx runtime error: {error}", pb_utils.TritonError.INTERNAL)
            return
        for index, wanted, answer in zip(group, asked, answers, strict=True):
            tensors = [pb_utils.Tensor(name, array) for name, array in answer.items() if name in wanted]
            responses[index] = pb_utils.InferenceResponse(tensors)

    def run(self, requests: list[dict[str, np.ndarray]], names: list[str]) -> list[dict[str, np.ndarray]]:
        """The named outputs of each request."""
        arrays = self.session.run(names, ort_batch.joined(requests)) if names else []
        outputs = {name: for_client(array) for name, array in zip(names, arrays, strict=True)}
        if self.batches:
            return ort_batch.split(outputs, ort_batch.row_counts(requests))
        return [outputs]


def version_folder() -> Path:
    """The version folder of the model, from the arguments of this process: `auto_complete_config` is not told."""
    arguments = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    return Path(arguments[1].decode()).parent


def for_file(tensor: FileTensor, array: np.ndarray) -> np.ndarray:
    """The array as ONNX Runtime takes it: text decoded, a scalar without the [1] that the configuration shows."""
    if array.dtype == np.object_:
        array = decoded(tensor.name, array)
    return array.reshape(()) if not tensor.shape else array


def decoded(name: str, array: np.ndarray) -> np.ndarray:
    """Text of an array of bytes.

    Raises:
        ValueError: it is not UTF-8.
    """
    try:
        flat = [item.decode() if isinstance(item, bytes) else item for item in array.ravel()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: the text is not valid UTF-8 ({error.reason}); send UTF-8") from error
    result = np.empty(len(flat), dtype=np.object_)
    result[:] = flat
    return result.reshape(array.shape)


def for_client(array: np.ndarray) -> np.ndarray:
    """The array as Triton takes it: a scalar as [1]."""
    return array.reshape(1) if array.ndim == 0 else array


def failed(message: str, code: Any) -> Any:
    """A response that carries an error only."""
    return pb_utils.InferenceResponse([], pb_utils.TritonError(message, code))
