import pickle

import pytest

import clients
from clients.errors import ArrayError, ClientError


def test_an_error_reads_as_where_found_expected_and_what_to_do() -> None:
    error = ArrayError("AUDIO", "dtype uint8", "float32 is needed", "Convert it.")
    assert str(error) == "AUDIO: dtype uint8; float32 is needed. Convert it."


def test_an_error_without_advice_keeps_the_words_as_they_are() -> None:
    assert str(ClientError("llm", "top_q: not known.")) == "llm: top_q: not known."


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(ArrayError("AUDIO", "found", "expected", "advice")))
    assert (type(error), error.where, error.advice) == (ArrayError, "AUDIO", "advice")


@pytest.mark.parametrize("name", [name for name in clients.__all__])
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(clients, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="conect"):
        _ = clients.conect
