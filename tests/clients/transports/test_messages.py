from typing import Any

import numpy as np
import pytest
from tritonclient.grpc import InferInput, InferResult, service_pb2

from clients.arrays import tensor
from clients.errors import ArrayError
from clients.regions import in_region
from clients.tensors import Request
from clients.transports.messages import infer_message, is_for, response_of, stream_messages


def request(*tensors) -> Request:
    return Request(model="m", tensors=tensors)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.zeros((0, 4), np.float32),
        np.array([True, False]),
        np.array([["Zoë".encode(), b"\x00a\x00"]], dtype=object),
        np.array([], dtype=object),
    ],
)
def test_an_input_is_packed_as_tritonclient_packs_it(array: np.ndarray) -> None:
    made = tensor("X", array)
    theirs = InferInput("X", list(array.shape), made.datatype)
    theirs.set_data_from_numpy(array)
    message = infer_message(request(made))
    assert message.inputs[0] == theirs._get_tensor()
    assert message.raw_input_contents[0] == (theirs._get_content() or b"")


def test_an_input_in_a_region_is_named_not_sent() -> None:
    message = infer_message(request(in_region(tensor("X", np.zeros(3, np.float32)), "region")))
    parameters = message.inputs[0].parameters
    assert not message.raw_input_contents
    assert parameters["shared_memory_region"].string_param == "region"
    assert parameters["shared_memory_byte_size"].int64_param == 12


def test_a_streamed_request_asks_for_the_empty_final_response() -> None:
    """VLL-07."""
    (message,) = stream_messages(request())
    assert message.parameters["triton_enable_empty_final_response"].bool_param
    assert "triton_enable_empty_final_response" not in infer_message(request()).parameters


def test_a_lifeline_goes_before_the_request_that_it_names() -> None:
    held = Request(model="assistant", tensors=(tensor("X", "a"),), id="some-long-request-id", lifeline="llm")
    first, message = stream_messages(held)
    assert (first.model_name, message.model_name, message.id) == ("llm", "assistant", held.id)
    assert first.inputs[0].name == "LIFELINE" and first.raw_input_contents[0].endswith(held.id.encode())

    def answered(request_id: str) -> Any:
        return service_pb2.ModelStreamInferResponse(infer_response={"id": request_id})

    assert is_for(held, answered(held.id)) and not is_for(held, answered(first.id))
    assert is_for(held, answered("")), "what belongs to nobody must not be lost"


def answer(*arrays: tuple[str, np.ndarray], is_final: bool | None = None):
    message = service_pb2.ModelInferResponse()
    for name, array in arrays:
        sent = infer_message(request(tensor(name, array)))
        message.outputs.add(name=name, datatype=sent.inputs[0].datatype, shape=sent.inputs[0].shape)
        message.raw_output_contents.append(sent.raw_input_contents[0])
    if is_final is not None:
        message.parameters["triton_final_response"].bool_param = is_final
    return message


def test_outputs_are_read_as_tritonclient_reads_them() -> None:
    arrays = {
        "F": np.arange(6, dtype=np.float16).reshape(2, 3),
        "S": np.array([[b"a", b""]], dtype=object),
        "E": np.zeros((0, 4), np.float32),
    }
    message = answer(*arrays.items())
    response, theirs = response_of(message), InferResult(message)
    for name, array in arrays.items():
        assert np.array_equal(response.outputs[name], theirs.as_numpy(name))
        assert response.outputs[name].shape == array.shape


@pytest.mark.parametrize(("flag", "is_final"), [(None, True), (True, True), (False, False)])
def test_the_final_flag_is_read_and_a_plain_answer_is_final(flag: bool | None, is_final: bool) -> None:
    """VLL-07."""
    assert response_of(answer(is_final=flag)).is_final is is_final


def test_a_request_too_large_for_one_message_is_refused_before_it_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLI-01."""
    monkeypatch.setattr("clients.arrays.MAX_REQUEST_BYTES", 11)
    with pytest.raises(ArrayError, match="m, input X: the request has 12 bytes; 11 is the limit"):
        infer_message(request(tensor("X", np.zeros(3, np.float32))))
