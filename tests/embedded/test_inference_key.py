"""A key for running models, on the real server: who has it is answered, over both protocols, streamed and not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from clients import Client, RequestRejected, connect
from embedded import EmbeddedServer
from load.arrivals import Closed
from load.inputs import random_items, signature_at
from load.plan import LoadPlan
from load.running import run
from load.triton import TritonTarget
from starter.keys import INFERENCE_KEY, inference_flags

pytestmark = pytest.mark.server

CONFIG = """
backend: "python"
input [{name: "X" data_type: TYPE_FP32 dims: [1]}]
output [{name: "Y" data_type: TYPE_FP32 dims: [1]}]
instance_group [{kind: KIND_CPU}]
"""
MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", one.as_numpy())])
                for one in (pb_utils.get_input_tensor_by_name(request, "X") for request in requests)]
"""
SPLIT = MODEL.replace(
    "        return [pb_utils.InferenceResponse",
    """        for request in requests:
            sender, given = request.get_response_sender(), pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            for value in (given, given + 1):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", value)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return
        return [pb_utils.InferenceResponse""",
)
KEY = "the key of this test's callers"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    repository = tmp_path_factory.mktemp("closed")
    streams = CONFIG + "model_transaction_policy {decoupled: true}"
    for name, config, source in (("once", CONFIG, MODEL), ("streams", streams, SPLIT)):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(config)
        (repository / name / "1" / "model.py").write_text(source)
    with EmbeddedServer(repository, flags=inference_flags(KEY)) as server:
        yield server


def ask(client: Client) -> list[float]:
    given = {"X": np.float32([3])}
    answers = [client.infer("once", given), *client.stream("streams", given)]
    return [float(one["Y"][0]) for one in answers]


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_only_callers_with_the_key_are_answered(
    server: EmbeddedServer, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INFERENCE_KEY, KEY)
    with connect(f"{scheme}://{getattr(server, scheme)}") as client:
        assert ask(client) == [3, 3, 4]
        for key in ("", "a guess"):
            monkeypatch.setenv(INFERENCE_KEY, key)
            with pytest.raises(RequestRejected, match="restricted.* Give this program the server's key, as") as refused:
                client.infer("once", {"X": np.float32([3])})
            assert INFERENCE_KEY in str(refused.value)
            with pytest.raises(RequestRejected, match="restricted"):
                list(client.stream("streams", {"X": np.float32([3])}))


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_the_load_generator_has_the_key_too(
    server: EmbeddedServer, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INFERENCE_KEY, KEY)
    url = f"{scheme}://{getattr(server, scheme)}"
    items = [
        item for model in ("once", "streams") for item in random_items(signature_at(url, model), shapes={}, count=1)
    ]
    target = TritonTarget(url=url, items=tuple(items))
    result = run(LoadPlan(target=target, arrivals=Closed(callers=1), seconds=0.3, warmup_s=0))
    assert result.records and result.error_rate == 0, result.problems
