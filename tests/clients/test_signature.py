import numpy as np
import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from clients.errors import ArrayError, EndpointError
from clients.signature import check_answers_once, request_for, signature_of


def signature(text: str):
    return signature_of(text_format.Parse(text, ModelConfig()))


PLAIN = signature("""name: "plain" input {name: "X" data_type: TYPE_FP32 dims: [-1, 2]}
    input {name: "NAME" data_type: TYPE_STRING dims: [1] optional: true}""")
BATCHED = signature('name: "batched" max_batch_size: 8 input {name: "X" data_type: TYPE_FP32 dims: [4]}')


def shape_of(signature: object, array: np.ndarray) -> tuple[int, ...]:
    return request_for(signature, {"X": array}).tensors[0].shape


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_inputs_that_fit_become_the_request() -> None:
    request = request_for(PLAIN, {"X": floats(3, 2), "NAME": "a"})
    assert [(one.name, one.datatype, one.shape) for one in request.tensors] == [
        ("X", "FP32", (3, 2)),
        ("NAME", "BYTES", (1,)),
    ]


def test_one_item_gets_the_batch_dimension_of_a_batching_model() -> None:
    """BAT-04."""
    assert shape_of(BATCHED, floats(4)) == (1, 4)
    assert shape_of(BATCHED, floats(8, 4)) == (8, 4)


def test_the_batch_dimension_is_never_added_to_a_model_that_does_not_batch() -> None:
    """BAT-04."""
    with pytest.raises(ArrayError, match=r"plain, input X: shape \[2\]; \[-1, 2\] is needed"):
        shape_of(PLAIN, floats(2))


@pytest.mark.parametrize("shape", [(9, 4), (0, 4), (1, 1, 4), (5,), (2, 5)])
def test_a_shape_that_can_not_fit_is_refused_with_both_shapes(shape: tuple[int, ...]) -> None:
    """BAT-04: another rank, and a batch of 9 where 8 are taken."""
    with pytest.raises(ArrayError) as caught:
        shape_of(BATCHED, floats(*shape))
    assert str(list(shape)) in str(caught.value)
    assert "[4], or the same after a batch of 1 to 8 is needed" in str(caught.value)


def test_an_unknown_input_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(ArrayError, match=r"no input name; X, NAME are its inputs\. Did you mean NAME\?"):
        request_for(PLAIN, {"X": floats(1, 2), "name": "a"})


def test_a_missing_input_is_named_but_an_optional_one_is_not() -> None:
    with pytest.raises(ArrayError, match="plain: no X; every input that isn't optional is needed"):
        request_for(PLAIN, {})


def test_another_datatype_is_refused_not_converted() -> None:
    with pytest.raises(ArrayError, match=r"FP64 \(float64\); FP32 is needed"):
        request_for(PLAIN, {"X": np.zeros((1, 2))})


def test_a_model_that_streams_is_told_before_anything_is_sent() -> None:
    """ENS-15: the served config says so, of an ensemble too."""
    decoupled = signature('name: "llm" model_transaction_policy {decoupled: true}')
    with pytest.raises(EndpointError, match=r"llm: the model is decoupled.*Call stream\(\)"):
        check_answers_once(decoupled)
    check_answers_once(PLAIN)
