"""The stand-in against the real server: the same model.py, the same requests, the same answers and errors.

snippets.txt holds lines of Python that the model `lab` runs in both and answers with what they left in `result`.
"""

from __future__ import annotations

import json
import queue
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from embedded import EmbeddedServer
from tritonkit.testing import Model, ModelError, load_model

pytestmark = pytest.mark.server

# On the server these leave the client waiting, or the instance hanging at its next request; see test_testing.py.
NEVER_ANSWERED = {"none", "list_of_none", "sender_raises_after_final", "sender_then_raises"}
# Here the server's words are about the protocol, not about the model.
REFUSED_ONLY_HERE = {"sender_twice", "twice"}


def modes(model: str) -> list[str]:
    """The methods of a model's class that an input MODE can name."""
    text = (Path(__file__).parent / "models" / model / "1" / "model.py").read_text()
    inner = {"execute", "answer", "initialize", "send_later"}
    return [name for name in re.findall(r"    def (\w+)\(self", text) if name not in inner]


def inputs_of(values: dict[str, Any]) -> list[triton.InferInput]:
    """The values as a plain client sends them."""
    inputs = []
    for name, value in values.items():
        array = np.array([value.encode()], dtype=np.object_) if isinstance(value, str) else value
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        inputs.append(tensor.set_data_from_numpy(array))
    return inputs


def of_server(server: EmbeddedServer, model: str, values: dict[str, Any], **options: Any) -> Any:
    """What a client of the real server sees."""
    with triton.InferenceServerClient(server.grpc) as client:
        try:
            result = client.infer(model, inputs_of(values), client_timeout=20, **options)
        except InferenceServerException as error:
            return as_error(error)
        return {output.name: comparable(result.as_numpy(output.name)) for output in result.get_response().outputs}


def stream_of_server(server: EmbeddedServer, model: str, values: dict[str, Any]) -> list[Any]:
    """The responses that a client of the real server sees, up to the end or an error that ends the request."""
    seen: queue.Queue[Any] = queue.Queue()
    outcomes: list[Any] = []
    with triton.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: seen.put((result, error)))
        try:
            client.async_stream_infer(model, inputs_of(values), enable_empty_final_response=True)
            while True:
                try:
                    result, error = seen.get(timeout=2 if outcomes and isinstance(outcomes[-1], tuple) else 20)
                except queue.Empty:
                    return outcomes  # an error was the last word
                if error is not None:
                    outcomes.append(("ANY", error.message()))
                    continue
                response = result.get_response()
                is_final = response.parameters["triton_final_response"].bool_param
                arrays = {output.name: comparable(result.as_numpy(output.name)) for output in response.outputs}
                if arrays or not is_final:
                    outcomes.append(arrays)
                if is_final:
                    return outcomes
        finally:
            client.stop_stream(cancel_requests=True)


def of_stand_in(model: Model, values: dict[str, Any], **options: Any) -> Any:
    """What a test with the stand-in sees."""
    try:
        return {name: comparable(array) for name, array in model.infer(values, **options).items()}
    except ModelError as error:
        return (error.code, error.message)


def stream_of_stand_in(model: Model, values: dict[str, Any]) -> list[Any]:
    """The same for a stream; the codes of errors in a stream are not passed on by the protocol."""
    outcomes: list[Any] = []
    for outcome in model.stream(values).outcomes():
        if isinstance(outcome, ModelError):
            outcomes.append(("ANY", outcome.message))
        else:
            outcomes.append({name: comparable(array) for name, array in outcome.items()})
    return outcomes


def as_error(error: InferenceServerException) -> tuple[str, str]:
    """Code and words of an error, in the names of TritonError."""
    code = error.status().removeprefix("StatusCode.")
    return ("INVALID_ARG" if code == "INVALID_ARGUMENT" else code, error.message())


def comparable(array: np.ndarray) -> Any:
    """Type, shape and values of an array."""
    return (array.dtype.str, array.shape, array.tolist())


@pytest.mark.parametrize("mode", [mode for mode in modes("modes") if mode not in NEVER_ANSWERED | REFUSED_ONLY_HERE])
def test_a_plain_model_answers_as_on_the_server(models: Path, models_served: EmbeddedServer, mode: str) -> None:
    with load_model(models / "modes", strict=False) as model:
        assert of_stand_in(model, {"MODE": mode}) == of_server(models_served, "modes", {"MODE": mode})


@pytest.mark.parametrize("mode", modes("stream"))
def test_a_decoupled_model_streams_as_on_the_server(models: Path, models_served: EmbeddedServer, mode: str) -> None:
    with load_model(models / "stream", strict=False) as model:
        assert stream_of_stand_in(model, {"MODE": mode}) == stream_of_server(models_served, "stream", {"MODE": mode})


@pytest.mark.parametrize("mode", modes("asks"))
def test_other_models_are_asked_as_on_the_server(models: Path, models_served: EmbeddedServer, mode: str) -> None:
    others = {name: load_model(models / name) for name in ("echo", "count")}
    with load_model(models / "asks", models=others) as model:
        assert of_stand_in(model, {"MODE": mode}) == of_server(models_served, "asks", {"MODE": mode})


REQUESTS: dict[str, dict[str, Any]] = {
    "given": {"MODE": "right", "X": np.full((2, 2), 3, np.float32)},
    "no rows": {"MODE": "right", "X": np.ones((0, 2), np.float32)},
    "wrong type": {"MODE": "right", "X": np.ones((2, 2), np.float64)},
    "wrong size": {"MODE": "right", "X": np.ones((2, 3), np.float32)},
    "wrong rank": {"MODE": "right", "X": np.ones((2,), np.float32)},
    "unknown input": {"MODE": "right", "Q": np.ones((2,), np.float32)},
    "nothing": {},
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_is_taken_or_refused_as_on_the_server(models: Path, models_served: EmbeddedServer, case: str) -> None:
    with load_model(models / "modes") as model:
        assert of_stand_in(model, REQUESTS[case]) == of_server(models_served, "modes", REQUESTS[case])


@pytest.mark.parametrize("rows", [0, 1, 4, 5])
def test_batches_are_taken_or_refused_as_on_the_server(models: Path, models_served: EmbeddedServer, rows: int) -> None:
    values = {"IN": np.ones((rows, 3), np.float32)}
    if rows == 0:
        values = {"IN": np.ones((2,), np.float32)}
    with load_model(models / "echo") as model:
        assert of_stand_in(model, values) == of_server(models_served, "echo", values)


def test_requested_outputs_and_parameters_arrive_as_on_the_server(models: Path, models_served: EmbeddedServer) -> None:
    with load_model(models / "modes") as model:
        for names in (["Y"], ["WORDS"], ["Y", "WORDS"], ["OTHER"]):
            wanted = [triton.InferRequestedOutput(name) for name in names]
            expected = of_server(models_served, "modes", {"MODE": "right"}, outputs=wanted)
            assert of_stand_in(model, {"MODE": "right"}, outputs=names) == expected
        sent: dict[str, Any] = {"parameters": {"a": 1}, "request_id": "seven"}
        expected = of_server(models_served, "modes", {"MODE": "parameters"}, **sent)
        assert of_stand_in(model, {"MODE": "parameters"}, **sent) == expected


def test_initialize_is_given_the_same_arguments(models: Path, models_served: EmbeddedServer) -> None:
    for name, values, output in (
        ("lab", {"CODE": "import json; result = json.dumps(args)"}, "RESULT"),
        ("completes", {"A": np.array([1, 2])}, "CONFIG"),
    ):
        with load_model(models / name) as model:
            ours, theirs = (
                arguments(outcome[output][2][0])
                for outcome in (of_stand_in(model, values), of_server(models_served, name, values))
            )
        assert ours == theirs


def arguments(text: bytes) -> dict[str, Any]:
    """The arguments of `initialize`, from JSON or the repr of JSON, configuration as a dictionary."""
    decoded = json.loads(text if text.startswith(b"{") else eval(text))
    return decoded | {"model_config": json.loads(decoded["model_config"])}


SNIPPETS = (Path(__file__).parent / "snippets.txt").read_text().splitlines()


@pytest.mark.parametrize("code", SNIPPETS)
def test_the_module_behaves_as_on_the_server(models: Path, models_served: EmbeddedServer, code: str) -> None:
    with load_model(models / "lab") as model:
        ours = of_stand_in(model, {"CODE": code})["RESULT"][2][0].decode()
    theirs = of_server(models_served, "lab", {"CODE": code})["RESULT"][2][0].decode()
    kinds = ("TypeError", "ValueError")  # of these the class counts, not the words
    if theirs.startswith(kinds):
        ours, theirs = ours.split(":")[0], theirs.split(":")[0]
    assert ours == theirs
