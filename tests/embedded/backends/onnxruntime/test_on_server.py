"""The backend on the real server: what facts about Triton's own C++ backend say, seen from a client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from embedded import EmbeddedServer, LoadFailed

pytestmark = pytest.mark.server


ONE = "instance_group { kind: KIND_CPU count: 1 }\n"
XY = """
backend: "onnxruntime"
input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }
"""


def write_good_models(repository: Path, onnx_files: SimpleNamespace) -> None:
    """One model per thing that the backend can do."""
    double = onnx_files.double
    double(repository, "bare", ["n", 4])
    double(repository, "platform", ["n", 4], config=ONE + 'platform: "onnxruntime_onnx"')
    double(repository, "fixed", [2, 3], config=ONE + 'backend: "onnxruntime"')
    double(repository, "scalar", [], config=ONE + 'backend: "onnxruntime"')
    double(repository, "row_scalar", ["n"], config=ONE + 'backend: "onnxruntime"')
    double(repository, "half", ["n", 4], TensorProto.FLOAT16, ONE + 'backend: "onnxruntime"')
    double(repository, "whole", ["n", "m"], TensorProto.INT64, ONE + 'backend: "onnxruntime"')
    double(
        repository,
        "batched",
        ["n", 4],
        config=ONE + XY + "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 20000000 }",
    )
    double(
        repository,
        "tuned",
        ["n", 4],
        config=ONE
        + XY
        + 'max_batch_size: 8 default_model_filename: "other.onnx" optimization { graph { level: 1 } }'
        + "".join(
            f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
            for key, value in {"intra_op_thread_count": 1, "inter_op_thread_count": 1, "execution_mode": 1}.items()
        ),
    )
    (repository / "tuned" / "1" / "model.onnx").rename(repository / "tuned" / "1" / "other.onnx")
    double(
        repository,
        "warmed",
        ["n", 4],
        config=ONE
        + XY
        + 'max_batch_size: 8 model_warmup { name: "warm" batch_size: 2 '
        + 'inputs { key: "X" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }',
    )
    double(
        repository,
        "reshaped",
        ["n", 4],
        config=ONE + XY.replace("dims: [ 4 ]", "dims: [ 2, 2 ] reshape { shape: [ 4 ] }") + "max_batch_size: 8",
    )
    for name, kind in {"text": TensorProto.STRING, "truth": TensorProto.BOOL}.items():
        onnx_files.save(
            repository / name / "1" / "model.onnx",
            [helper.make_node("Identity", ["X"], ["Y"])],
            {"X": (kind, ["n", "m"])},
            {"Y": (kind, ["n", "m"])},
        )
        (repository / name / "config.pbtxt").write_text(ONE + 'backend: "onnxruntime"')
    onnx_files.save(
        repository / "two_outputs" / "1" / "model.onnx",
        [helper.make_node("Neg", ["X"], ["Y"]), helper.make_node("Reshape", ["X", "SHAPE"], ["Z"])],
        {"X": (TensorProto.FLOAT, ["n", 4]), "SHAPE": (TensorProto.INT64, [2])},
        {"Y": (TensorProto.FLOAT, ["n", 4]), "Z": (TensorProto.FLOAT, ["a", "b"])},
    )
    (repository / "two_outputs" / "config.pbtxt").write_text(ONE + 'backend: "onnxruntime"')


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, checkout: Path, onnx_files: SimpleNamespace
) -> Iterator[EmbeddedServer]:
    """The server over all of them."""
    repository = tmp_path_factory.mktemp("onnx")
    write_good_models(repository, onnx_files)
    with EmbeddedServer(repository, cache=checkout / ".cache", cpu_threads=1, stop_timeout_s=3) as started:
        yield started


def ask(server: EmbeddedServer, model: str, outputs: list[str] | None = None, **arrays: np.ndarray) -> Any:
    """The outputs of one request."""
    inputs = [
        triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)).set_data_from_numpy(array)
        for name, array in arrays.items()
    ]
    wanted = [triton.InferRequestedOutput(name) for name in outputs] if outputs else None
    with triton.InferenceServerClient(server.grpc) as client:
        result = client.infer(model, inputs, outputs=wanted, client_timeout=20)
    return {output.name: result.as_numpy(output.name) for output in result.get_response().outputs}


def statistics_of(server: EmbeddedServer, model: str, count: int) -> dict[str, Any]:
    """What the server counted, once it has counted so many rows: it answers before it counts."""
    end_s = time.monotonic() + 20
    with triton.InferenceServerClient(server.grpc) as client:
        while True:
            found = client.get_inference_statistics(model, as_json=True)["model_stats"][0]
            if int(found.get("inference_count", 0)) >= count or time.monotonic() > end_s:
                return found
            time.sleep(0.05)


def config_of(server: EmbeddedServer, model: str) -> dict[str, Any]:
    """The configuration as the server completed it."""
    with triton.InferenceServerClient(server.grpc) as client:
        return client.get_model_config(model, as_json=True)["config"]


def test_a_bare_file_is_completed_as_by_the_original(server: EmbeddedServer) -> None:
    config = config_of(server, "bare")
    assert (config["platform"], config["backend"]) == ("onnxruntime_onnx", "onnxruntime")
    assert config["max_batch_size"] == 4
    assert config["dynamic_batching"] == {"preferred_batch_size": [4]}
    assert config["instance_group"] == [{"name": "bare", "count": 2, "kind": "KIND_CPU"}]
    assert config["input"] == [{"name": "X", "data_type": "TYPE_FP32", "dims": ["4"]}]


ROWS = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        ("bare", ROWS, ROWS * 2),
        ("platform", ROWS, ROWS * 2),
        ("fixed", np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)),
        ("scalar", np.array([3], np.float32), np.array([6], np.float32)),
        ("row_scalar", np.array([[1], [2]], np.float32), np.array([[2], [4]], np.float32)),
        ("half", ROWS.astype(np.float16), (ROWS * 2).astype(np.float16)),
        ("whole", np.array([[2**40]]), np.array([[2**41]])),
        ("tuned", ROWS, ROWS * 2),
        ("reshaped", ROWS.reshape(2, 2, 2), ROWS.reshape(2, 2, 2) * 2),
        ("truth", np.array([[True, False]]), np.array([[True, False]])),
    ],
)
def test_every_kind_of_tensor_comes_back(
    server: EmbeddedServer, model: str, given: np.ndarray, expected: np.ndarray
) -> None:
    answer = ask(server, model, X=given)["Y"]
    assert answer.dtype == expected.dtype
    np.testing.assert_array_equal(answer, expected)


def test_text_comes_back_as_it_went(server: EmbeddedServer) -> None:
    given = np.array([["a", "ä €", ""]], dtype=np.object_)
    assert ask(server, "text", X=given)["Y"].tolist() == [[b"a", "ä €".encode(), b""]]


def test_text_that_is_not_utf_8_is_refused_and_the_next_request_works(server: EmbeddedServer) -> None:
    with pytest.raises(InferenceServerException, match="X: the text is not valid UTF-8"):
        ask(server, "text", X=np.array([[b"\xff"]], dtype=np.object_))
    assert ask(server, "text", X=np.array([[b"good"]], dtype=np.object_))["Y"].tolist() == [[b"good"]]


def test_only_requested_outputs_come_back(server: EmbeddedServer) -> None:
    given = {"X": ROWS, "SHAPE": np.array([4, 2])}
    assert set(ask(server, "two_outputs", **given)) == {"Y", "Z"}
    assert set(ask(server, "two_outputs", ["Z"], **given)) == {"Z"}


def test_an_error_of_the_network_is_told_and_the_next_request_works(server: EmbeddedServer) -> None:
    with pytest.raises(InferenceServerException, match="onnx runtime error: .*Reshape"):
        ask(server, "two_outputs", X=ROWS, SHAPE=np.array([5, 5]))
    assert ask(server, "two_outputs", X=ROWS, SHAPE=np.array([1, 8]))["Z"].shape == (1, 8)


def test_requests_that_wait_together_are_one_run(server: EmbeddedServer) -> None:
    answers: dict[int, np.ndarray] = {}

    def one(number: int) -> None:
        answers[number] = ask(server, "batched", X=np.full((1, 4), number, np.float32))["Y"]

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: answer.tolist() for number, answer in answers.items()} == {
        number: [[number * 2.0] * 4] for number in range(8)
    }
    statistics = statistics_of(server, "batched", 8)  # eight fill the batch: nothing waits for the delay to end
    assert (statistics["inference_count"], statistics["execution_count"]) == ("8", "1")


def test_warm_up_runs_before_the_first_request(server: EmbeddedServer) -> None:
    statistics = statistics_of(server, "warmed", 2)
    assert (statistics["inference_count"], statistics["execution_count"]) == ("2", "1")


WRONG = {
    "name": (XY.replace('"X"', '"Z"'), "unexpected inference input 'Z', allowed inputs are: X"),
    "dims": (XY.replace("dims: [ 4 ]", "dims: [ 5 ]"), "the model expects 2 dimensions (shape [-1,4]) but"),
    "type": (XY.replace("FP32", "FP16"), "configuration expects datatype TYPE_FP16 for input 'X', model provides"),
    "mode": (
        XY + 'parameters { key: "execution_mode" value { string_value: "3" } }',
        "execution_mode are 0 or 1 but got 3",
    ),
    "file": (XY + 'default_model_filename: "missing.onnx"', "failed to stat file"),
}


def test_a_configuration_that_contradicts_the_file_is_refused(
    tmp_path: Path, checkout: Path, onnx_files: SimpleNamespace
) -> None:
    for name, (config, _) in WRONG.items():
        onnx_files.double(tmp_path, name, ["n", 4], config=ONE + config + "max_batch_size: 8")
    onnx_files.double(tmp_path, "batch", [1, 4], config=ONE + XY + "max_batch_size: 8")
    broken = onnx_files.double(tmp_path, "broken", ["n", 4], config=ONE + 'backend: "onnxruntime"') / "1" / "model.onnx"
    broken.write_bytes(b"not an ONNX file")
    newer = onnx_files.double(tmp_path, "newer", ["n", 4], config=ONE + 'backend: "onnxruntime"') / "1" / "model.onnx"
    model = onnx.load(newer)
    model.ir_version = 99
    onnx.save(model, newer)
    with pytest.raises(LoadFailed) as failure, EmbeddedServer(tmp_path, cache=checkout / ".cache", cpu_threads=1):
        pass
    problems = {problem.model: problem for problem in failure.value.problems}
    assert problems.keys() == {*WRONG, "batch", "broken", "newer"}
    for name, (_, words) in WRONG.items():
        assert words in problems[name].words
    assert "the first dimension must be -1" in problems["batch"].words
    assert "export it with a dynamic first dimension" in problems["batch"].advice
    assert "onnx runtime error" in problems["broken"].words
    assert "IR version: 99" in problems["newer"].words
