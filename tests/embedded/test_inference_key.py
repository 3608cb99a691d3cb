"""A key for running models, on the real server: who has it is answered, over both protocols, streamed and not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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

STREAMS = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender, given = request.get_response_sender(), request.inputs()[0].as_numpy()
            for value in (given, given + 1):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", value)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
KEY = "the key of this test's callers"


@pytest.fixture
def server(write_model: Callable[..., Path], serve: Callable[..., EmbeddedServer]) -> EmbeddedServer:
    config = write_model("once") / "config.pbtxt"
    write_model("streams", config.read_text() + "model_transaction_policy { decoupled: true }", STREAMS)
    server = serve(flags=inference_flags(KEY))
    server.start()
    server.wait_ready()
    return server


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
