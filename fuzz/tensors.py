"""Odd requests to a Triton server's models. In: a `random.Random`. Out: what was sent, what is wrong with the answer.

Tensors of wrong types, shapes, sizes and contents are told to their sender as such; none is an exception in a model,
and none of them ends a process; but for the shapes of shapes.py, which are sent by themselves.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

from fuzz.gateway import PICTURE
from fuzz.odd import KEYS, MORE_KEYS, ODD, changed, damaged
from fuzz.shapes import SIZES, Ended, is_deadly, send_deadly

# Model -> how often it is asked: decoding what never was speech takes a second.
MODELS = {
    "prompt": 8,
    "llm": 8,
    "yolo_preprocess": 8,
    "yolo_postprocess": 8,
    "whisper_features": 6,
    "detect": 6,
    "yolo": 3,
    "whisper_encoder": 1,
    "whisper_decoder": 1,
    "transcribe": 1,
    "assistant_image": 2,
    "assistant_text": 4,
    "assistant": 1,
}
LIMIT_S, HELD_S = 90.0, 5.0
DTYPES: dict[str, Any] = {"FP32": np.float32, "INT32": np.int32, "UINT8": np.uint8}
MOST_BYTES = 4 * 2**20
TEXTS: dict[str, Any] = {
    "SAMPLING_PARAMETERS": {"max_tokens": 4, "temperature": 0.5, "stop": ["x"]},
    "MESSAGES": [{"role": "user", "content": "Hello"}],
    "TEMPLATE_ARGUMENTS": {"tools": []},
    "DETECTIONS": {"width": 10, "height": 10, "detections": [{"label": "cup", "confidence": 0.5, "box": [1, 2, 3, 4]}]},
    "MODE": "fast",
    "TASK": "transcribe",
    "LANGUAGE": "en",
}
# What a server says when a model raised an exception or lost its process.
FAILED = ("Traceback", "Failed to process the request(s)", "not healthy", "Internal:", "a request failed")

NEVER = (grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)


class Models:
    """The models of one server. address: host:port of its gRPC endpoint."""

    def __init__(self, address: str) -> None:
        self._address = address
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._configs = {
            name: self._stub.ModelConfig(service_pb2.ModelConfigRequest(name=name)).config for name in MODELS
        }

    def ask(self, chance: random.Random) -> tuple[str, str]:
        """What was asked, in a few words, and what is wrong with the answer; "" if nothing."""
        model = chance.choices(tuple(MODELS), tuple(MODELS.values()))[0]
        request = self._request(model, chance)
        while any(is_deadly(one.shape, one.datatype) for one in request.inputs):
            request = self._request(model, chance)
        words = f"{model} {[(one.name, one.datatype, list(one.shape)) for one in request.inputs]}"
        # A lifeline is answered when the request that it names ends, and is held until its caller goes.
        is_lifeline = [one.name for one in request.inputs] == ["LIFELINE"]
        limit_s = HELD_S if is_lifeline else LIMIT_S
        try:
            if self._configs[model].model_transaction_policy.decoupled:
                errors = [one.error_message for one in self._stub.ModelStreamInfer(iter([request]), timeout=limit_s)]
            else:
                self._stub.ModelInfer(request, timeout=limit_s)
                errors = []
        except grpc.RpcError as error:
            if is_lifeline and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return words, ""
            if error.code() in NEVER:
                return words, f"{error.code()}: {error.details()}"
            errors = [str(error.details())]
        return words, next((one for one in errors if any(sign in one for sign in FAILED)), "")

    def end_processes(self) -> Iterator[Ended]:
        """Send what ends processes, one after the other, each once its model answers again."""
        address = self._address

        def stub() -> Any:
            self.close()  # a connection that found nobody waits long before it tries again
            self._channel = grpc.insecure_channel(address)
            return service_pb2_grpc.GRPCInferenceServiceStub(self._channel)

        return send_deadly(stub, self._configs.values(), type_of, LIMIT_S)

    def close(self) -> None:
        self._channel.close()

    def _request(self, model: str, chance: random.Random) -> Any:
        config = self._configs[model]
        request = service_pb2.ModelInferRequest(model_name=model, id=chance.choice(("", "1", "é" * 40)))
        if chance.random() < 0.05:
            request.parameters["sequence_id"].int64_param = chance.choice((0, 1, -1))
        for given in config.input:
            if chance.random() > (0.7 if given.optional else 0.95):
                continue
            datatype = type_of(given)
            shape, content = tensor(given.name, datatype, list(given.dims), config.max_batch_size, chance)
            name = given.name if chance.random() < 0.98 else chance.choice(("", "X", given.name.lower()))
            told = datatype if chance.random() < 0.95 else chance.choice(tuple(SIZES))
            request.inputs.add(name=name, datatype=told, shape=shape)
            request.raw_input_contents.append(content)
        if chance.random() < 0.02 and request.raw_input_contents:
            request.raw_input_contents.pop()
        if chance.random() < 0.05:
            request.outputs.add(name=chance.choice(("X", "", config.output[0].name)))
        return request


def type_of(given: Any) -> str:
    """An input's type as a request has it."""
    from tritonclient.grpc.model_config_pb2 import DataType

    return DataType.Name(given.data_type).removeprefix("TYPE_").replace("STRING", "BYTES")


def tensor(
    name: str, datatype: str, dims: list[int], max_batch_size: int, chance: random.Random
) -> tuple[list[int], bytes]:
    """A shape, and a content that mostly has its size."""
    dims = [chance.choice((0, 1, 1, 2, 3, 7, 100, 1500)) if size < 0 else size for size in dims]
    shape = [chance.choice((1, 1, 2, 9)), *dims] if max_batch_size else dims
    kind = chance.random()
    if kind < 0.05:
        shape = [*shape, 1]
    elif kind < 0.1:
        shape = shape[1:]
    elif kind < 0.2 and shape:
        shape[chance.randrange(len(shape))] = chance.choice((0, 1, 2, 2**20, -1, -(2**40), 2**62))
    if name == "IMAGE" and chance.random() < 0.7:
        content = damaged(PICTURE, chance)
        return [len(content)], content
    if datatype == "BYTES":
        content = b"".join(text(name, chance) for _ in range(min(8, max(0, int(np.prod(shape))))))
    else:
        content = numbers(
            datatype, min(MOST_BYTES, max(0, int(np.prod(shape, dtype=object)) * SIZES[datatype])), chance
        )
    return shape, content if chance.random() < 0.95 else damaged(content + b"x", chance)


def numbers(datatype: str, size: int, chance: random.Random) -> bytes:
    """So many bytes of numbers, now and then with some that no model was made for."""
    dtype = DTYPES[datatype]
    count = size // SIZES[datatype]
    made = np.random.default_rng(chance.randrange(2**32))
    if dtype is not np.float32:
        return made.bytes(size)
    values = made.standard_normal(count, dtype) * dtype(chance.choice((0, 0.1, 1, 1e4, 1e30)))
    if count and chance.random() < 0.3:
        values[made.integers(0, count, 5)] = chance.choice((np.nan, np.inf, -np.inf, 3e38))
    return values.tobytes()


def text(name: str, chance: random.Random) -> bytes:
    """One element of a text tensor, as it goes over the wire."""
    value = TEXTS.get(name, "Hello")
    for _ in range(chance.randrange(3)):
        value = changed(value, chance, KEYS + MORE_KEYS)
    choices: tuple[Callable[[], bytes], ...] = (
        lambda: (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass"),
        lambda: chance.randbytes(chance.choice((0, 1, 20, 2000))),
        lambda: json.dumps(chance.choice(ODD)).encode(),
    )
    content = chance.choices(choices, (8, 1, 1))[0]()
    return struct.pack("<I", len(content)) + content
