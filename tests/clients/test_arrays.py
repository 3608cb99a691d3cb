import numpy as np
import pytest

from clients.arrays import check_size, json_text, read_json, read_number, read_text, tensor, text
from clients.errors import ArrayError
from clients.tensors import Request, Response, Tensor


@pytest.mark.parametrize(
    ("dtype", "datatype"), [("float32", "FP32"), ("float64", "FP64"), ("uint8", "UINT8"), ("bool", "BOOL")]
)
def test_tensor_keeps_the_type_of_numbers(dtype: str, datatype: str) -> None:
    made = tensor("X", np.zeros((2, 3), dtype=dtype))
    assert (made.datatype, made.shape, made.array.dtype) == (datatype, (2, 3), np.dtype(dtype))


def test_tensor_takes_text_bytes_and_lists_of_them() -> None:
    """PYB-08: text goes as UTF-8, bytes as they are."""
    assert list(tensor("X", "Zoë").array) == ["Zoë".encode()]
    assert list(tensor("X", ["ab", b"\x00a\x00"]).array) == [b"ab", b"\x00a\x00"]
    assert tensor("X", []).shape == (0,)
    assert tensor("X", np.array([["a"], [b"b"]], dtype=object)).shape == (2, 1)


def test_tensor_turns_big_endian_numbers_round() -> None:
    made = tensor("X", np.arange(3, dtype=">f4"))
    assert made.array.tobytes() == np.arange(3, dtype="<f4").tobytes()


def test_tensor_keeps_the_shape_of_a_scalar_and_of_a_strided_array() -> None:
    assert tensor("X", np.float32(1)).shape == ()
    assert tensor("X", np.arange(6, dtype=np.int32).reshape(2, 3).T).array.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([b"ab\x00"], dtype="S4"), "drops zero bytes"),
        (np.array(["text"]), "has no form on the wire"),
        (np.array([1j]), "dtype complex128"),
        (np.array([1, "a"], dtype=object), "an element is a int"),
        (["a", 1], "a list"),
        (1.5, "a float"),
        (None, "a NoneType"),
    ],
)
def test_tensor_refuses_what_would_lose_something_or_has_no_form(value: object, words: str) -> None:
    """PYB-08: S4 and U4 are the first two."""
    with pytest.raises(ArrayError, match=words):
        tensor("X", value)


def test_text_refuses_what_is_no_unicode_and_says_where() -> None:
    with pytest.raises(ArrayError, match=r"QUESTION: character 1 \('\\udcff'\) is no text"):
        text("QUESTION", "a\udcff")


@pytest.mark.parametrize("value", [float("nan"), {"stop": {1}}, np.float32(1)])
def test_json_text_refuses_what_json_can_not_say(value: object) -> None:
    with pytest.raises(ArrayError, match="values that JSON can hold"):
        json_text("SAMPLING_PARAMETERS", value)


class Huge(np.ndarray):
    """Pretends to be larger than a message can be, without the memory."""

    nbytes = 2**31  # type: ignore[assignment]


def test_check_size_refuses_before_sending_and_points_to_shared_memory() -> None:
    """CLI-01."""
    huge = Tensor(name="AUDIO", datatype="FP32", array=np.zeros(1, np.float32).view(Huge))
    with pytest.raises(ArrayError, match=r"2,147,483,648 bytes; 2,147,483,647 is the limit.*shared_memory=True"):
        check_size(Request(model="transcribe", tensors=(huge,)))


def test_check_size_does_not_count_what_is_in_shared_memory() -> None:
    shared = Tensor(name="AUDIO", datatype="FP32", array=np.zeros(1, np.float32).view(Huge), region="r")
    check_size(Request(model="transcribe", tensors=(shared,)))


def test_read_text_is_none_for_an_output_that_did_not_come() -> None:
    assert read_text(Response(), "TEXT") is None
    assert read_number(Response(), "PROMPT_TOKENS") == 0


@pytest.mark.parametrize("array", [np.array([b"\xff"], dtype=object), np.zeros(0), np.zeros(1)])
def test_read_text_names_an_output_that_is_no_text(array: np.ndarray) -> None:
    with pytest.raises(ArrayError, match="output TEXT"):
        read_text(Response(outputs={"TEXT": array}), "TEXT")


def test_read_json_names_an_output_that_is_no_json() -> None:
    with pytest.raises(ArrayError, match="output SEGMENTS.*JSON is expected"):
        read_json(Response(outputs={"SEGMENTS": np.array([b"{"], dtype=object)}), "SEGMENTS")
