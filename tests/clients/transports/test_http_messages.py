import json

import numpy as np
import pytest
import tritonclient.http as triton

from clients.arrays import number, tensor, text
from clients.errors import ArrayError, EndpointError
from clients.regions import in_region
from clients.tensors import Request
from clients.transports.http_messages import (
    error_words,
    generate_body,
    generate_response,
    infer_body,
    infer_response,
    sse_documents,
)


def request(*tensors) -> Request:
    return Request(model="m", tensors=tensors)


def test_the_body_for_infer_is_as_tritonclient_makes_it() -> None:
    arrays = {"X": np.arange(3, dtype=np.float32), "S": np.array([b"a", b"\x00"], dtype=object)}
    inputs = []
    for name, array in arrays.items():
        inputs.append(triton.InferInput(name, list(array.shape), tensor(name, array).datatype))
        inputs[-1].set_data_from_numpy(array)
    theirs, their_length = triton.InferenceServerClient.generate_request_body(inputs)
    ours, our_length = infer_body(request(*(tensor(name, array) for name, array in arrays.items())))
    assert ours[our_length:] == theirs[their_length:]
    assert json.loads(ours[:our_length]) == json.loads(theirs[:their_length])


def test_an_input_in_a_region_is_named_not_sent() -> None:
    body, length = infer_body(request(in_region(tensor("X", np.zeros(3, np.float32)), "region")))
    assert len(body) == length
    assert json.loads(body)["inputs"][0]["parameters"] == {
        "shared_memory_region": "region",
        "shared_memory_byte_size": 12,
    }


def test_an_answer_of_infer_is_read_with_its_binary_outputs_in_order() -> None:
    raws = [np.array([[1, 2]], np.int32).tobytes(), b"\x01\x00\x00\x00a", b""]
    outputs = [
        {"name": "N", "datatype": "INT32", "shape": [1, 2], "parameters": {"binary_data_size": len(raws[0])}},
        {"name": "S", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": len(raws[1])}},
        {"name": "E", "datatype": "FP32", "shape": [0, 4], "parameters": {"binary_data_size": 0}},
    ]
    header = json.dumps({"outputs": outputs}).encode()
    response = infer_response(header + b"".join(raws), len(header))
    assert response.outputs["N"].tolist() == [[1, 2]]
    assert response.outputs["S"].tolist() == [b"a"]
    assert response.outputs["E"].shape == (0, 4)


def test_an_answer_without_binary_outputs_is_read_from_its_json() -> None:
    body = json.dumps({"outputs": [{"name": "S", "datatype": "BYTES", "shape": [1], "data": ["Zoë"]}]}).encode()
    assert infer_response(body, None).outputs["S"].tolist() == ["Zoë".encode()]


def test_the_body_for_generate_has_scalars_and_flat_lists() -> None:
    body = generate_body(
        request(text("QUESTION", "Zoë?"), number("IOU", 0.5), tensor("IMAGE", np.array([1, 2], np.uint8)))
    )
    assert json.loads(body) == {"QUESTION": "Zoë?", "IOU": 0.5, "IMAGE": [1, 2]}


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (tensor("X", np.zeros((2, 2), np.float32)), r"shape \[2, 2\]; streamed calls over HTTP carry flat arrays only"),
        (tensor("X", [b"\xff"]), "bytes that are no text"),
        (in_region(tensor("X", np.zeros(2, np.float32)), "r"), "its values are in shared memory"),
    ],
)
def test_what_generate_can_not_carry_is_refused_naming_the_transport_that_can(one, words: str) -> None:
    with pytest.raises(EndpointError, match=rf"{words}.*grpc://"):
        generate_body(request(one))


def test_nan_is_refused_where_only_json_goes() -> None:
    with pytest.raises(ArrayError, match="m, input AUDIO over HTTP: NaN or infinity"):
        generate_body(request(tensor("AUDIO", np.array([0, np.nan], np.float32))))


def test_more_than_a_server_accepts_is_refused_naming_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clients.transports.http_messages.MAX_BODY_BYTES", 20)
    with pytest.raises(EndpointError, match="is what servers accept.*grpc://"):
        generate_body(request(text("QUESTION", "a" * 20)))


STREAM = b'data: {"TEXT":"a\\n"}\n\ndata: {"TEXT":"b"}\n\n: comment\n\ndata:{"N":7}\n\n'


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_found_however_the_stream_is_cut(size: int) -> None:
    chunks = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert list(sse_documents(chunks)) == [{"TEXT": "a\n"}, {"TEXT": "b"}, {"N": 7}]


def test_an_event_comes_out_as_soon_as_it_is_whole() -> None:
    def chunks():
        yield b'data: {"N":1}\n'
        raise AssertionError("asked for more than the first event needs")

    assert next(sse_documents(chunks())) == {"N": 1}


def test_an_event_becomes_outputs_without_what_is_about_the_model() -> None:
    response = generate_response({"TEXT": "Zoë", "N": [1, 2], "model_name": "llm", "model_version": "1"})
    assert {name: array.tolist() for name, array in response.outputs.items()} == {
        "TEXT": ["Zoë".encode()],
        "N": [1, 2],
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error":"unknown model"}', "unknown model"),
        (b'data: {"error":"word 0"}\n\n', "word 0"),
        (b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (b'{"detail": 1}', '{"detail": 1}'),
        (b"", ""),
    ],
)
def test_error_words_are_the_servers_own_whoever_answers(body: bytes, words: str) -> None:
    assert error_words(body) == words
