"""Requests and responses as the protobuf messages that gRPC carries, and back. Pure; shared by both gRPC transports."""

from typing import Any

import numpy as np
from tritonclient.grpc import service_pb2
from tritonclient.utils import deserialize_bytes_tensor, serialize_byte_tensor, triton_to_np_dtype

from clients.arrays import check_size
from clients.lifelines import lifeline_of
from clients.tensors import Request, Response, Tensor

WANTS_EMPTY_FINAL = "triton_enable_empty_final_response"
IS_FINAL = "triton_final_response"


def infer_message(request: Request) -> Any:
    """The ModelInferRequest for one call.

    Raises:
        ArrayError: more bytes than one message can carry.
    """
    check_size(request)
    message = service_pb2.ModelInferRequest(model_name=request.model, id=request.id)
    for tensor in request.tensors:
        _add_input(message, tensor)
    return message


def stream_messages(request: Request) -> list[Any]:
    """The same for a streamed call, its lifeline first; asks for the empty last response that tells the end.

    Both go on one stream: whatever ends it ends both.
    """
    message = infer_message(request)
    message.parameters[WANTS_EMPTY_FINAL].bool_param = True
    return [infer_message(lifeline_of(request)), message] if request.lifeline else [message]


def is_for(request: Request, answer: Any) -> bool:
    """Whether a message of the stream answers the request, and not its lifeline."""
    return not request.lifeline or answer.infer_response.id != lifeline_of(request).id


def response_of(message: Any) -> Response:
    """The Response in a ModelInferResponse."""
    raw = message.raw_output_contents
    outputs = {one.name: _array(one, raw[place]) for place, one in enumerate(message.outputs)}
    is_final = IS_FINAL not in message.parameters or message.parameters[IS_FINAL].bool_param
    return Response(outputs=outputs, is_final=is_final)


def raw_bytes(tensor: Tensor) -> bytes:
    """The values as the wire and shared memory hold them: in row order, little-endian, BYTES with their lengths."""
    if tensor.datatype != "BYTES":
        return tensor.array.tobytes()
    packed = serialize_byte_tensor(tensor.array)
    return packed.item() if packed.size else b""


def _add_input(message: Any, tensor: Tensor) -> None:
    one = message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
    if tensor.region:
        one.parameters["shared_memory_region"].string_param = tensor.region
        one.parameters["shared_memory_byte_size"].int64_param = tensor.byte_size
    else:
        message.raw_input_contents.append(raw_bytes(tensor))


def _array(output: Any, raw: bytes) -> np.ndarray:
    if output.datatype == "BYTES":
        return deserialize_bytes_tensor(raw).reshape(tuple(output.shape))
    return np.frombuffer(raw, dtype=triton_to_np_dtype(output.datatype)).reshape(tuple(output.shape))
