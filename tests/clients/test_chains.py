"""Copies of a pipeline: who answers, and what happens when one is not there."""

import asyncio
import json
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import tritonclient.http

from clients import NotReady, connect, connect_async
from clients.chains import Chains, name_in
from clients.errors import EndpointError
from clients.tensors import Request, Response
from embedded import EmbeddedServer


@pytest.mark.parametrize(
    ("model", "name"),
    [("detect", "detect_gpu1"), ("llm", "llm_gpu1"), ("assistant", "assistant_gpu1")]
    + [(f"assistant_{suffix}", f"assistant_gpu1_{suffix}") for suffix in ("audio", "image", "text")],
)
def test_copies_are_called_as_the_builder_calls_them(model: str, name: str) -> None:
    assert (name_in(0, model), name_in(1, model)) == (model, name)


def test_a_wrong_number_of_chains_is_refused() -> None:
    with pytest.raises(EndpointError, match="chains: 0; a whole number from 1 on"):
        connect(chains=0)


ASKED = Request(model="detect", tensors=())


def answer(request: Request) -> Response:
    return Response(outputs={request.model: None})  # type: ignore[dict-item]


def absent(request: Request) -> Response:
    raise NotReady(request.model, "not ready", "", "")


def name_of(response: Response) -> str:
    return next(iter(response.outputs))


def test_idle_copies_take_turns() -> None:
    chains = Chains(3)
    found = Counter(name_of(chains.infer(ASKED, answer)) for _ in range(9))
    assert found == {"detect": 3, "detect_gpu1": 3, "detect_gpu2": 3}


def test_the_copy_with_the_least_to_do_is_asked() -> None:
    chains = Chains(2)

    def stream(request: Request) -> Generator[Response, None, None]:
        yield answer(request)
        yield answer(request)

    first, second = chains.stream(ASKED, stream), chains.stream(ASKED, stream)
    busy = {name_of(next(first)), name_of(next(second))}
    assert busy == {"detect", "detect_gpu1"}
    freed = name_of(next(first))
    first.close()
    assert {name_of(chains.infer(ASKED, answer)) for _ in range(4)} == {freed}
    second.close()
    assert {name_of(chains.infer(ASKED, answer)) for _ in range(4)} == busy


def test_a_copy_that_is_not_loaded_is_passed_over() -> None:
    chains, asked = Chains(2), []

    def call(request: Request) -> Response:
        asked.append(request.model)
        return absent(request) if request.model == "detect" else answer(request)

    assert {name_of(chains.infer(ASKED, call)) for _ in range(6)} == {"detect_gpu1"}
    assert asked.count("detect") == 1, "it is known for a while that it is not there"
    with pytest.raises(NotReady):
        chains.infer(ASKED, absent)


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    chains = Chains(2)

    def breaks(request: Request) -> Generator[Response, None, None]:
        yield answer(request)
        absent(request)

    events = chains.stream(ASKED, breaks)
    next(events)
    with pytest.raises(NotReady):
        next(events)


# Two chains of `detect` on a real server.


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Iterator[EmbeddedServer]:
    folder = tmp_path_factory.mktemp("chains") / "repository"
    command = [sys.executable, "-m", "tritonkit", "build", "detect", "--chains", "2", "--out", str(folder)]
    subprocess.run(command, cwd=checkout, check=True, stdout=subprocess.DEVNULL)
    loaded = ("detect", "detect_gpu1")
    with EmbeddedServer(folder, load=loaded, cache=checkout / ".cache", cpu_threads=1, stop_timeout_s=1) as server:
        yield server


def served_by(server: EmbeddedServer) -> dict[str, int]:
    """How many requests each copy of the network has answered."""
    counts = {}
    for model in ("yolo", "yolo_gpu1"):
        with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/stats", timeout=5) as reply:
            counts[model] = json.load(reply)["model_stats"][0]["inference_stats"]["success"]["count"]
    return counts


@pytest.mark.server
def test_requests_are_shared_between_the_chains_and_a_missing_one_is_made_up_for(two: Any, checkout: Path) -> None:
    photo = (checkout / "samples" / "coffee.jpg").read_bytes()
    before = served_by(two)  # by the warm-up

    def more() -> tuple[int, ...]:
        return tuple(count - before[model] for model, count in served_by(two).items())

    with connect(f"grpc://{two.grpc}", chains=2) as client:
        labels: list[str] = []
        threads = [
            threading.Thread(target=lambda: labels.extend(one.label for one in client.detect(photo).items))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert labels == ["cup"] * 8
        assert more() == (4, 4)

        async def ask() -> list[Any]:
            async with connect_async(f"grpc://{two.grpc}", chains=2) as other:
                return await asyncio.gather(*(other.detect(photo) for _ in range(4)))

        assert len(asyncio.run(ask())) == 4
        assert more() == (6, 6)

        control = tritonclient.http.InferenceServerClient(two.http)
        control.unload_model("detect_gpu1")
        assert [client.detect(photo).items[0].label for _ in range(4)] == ["cup"] * 4
        assert more() == (10, 6)
        control.load_model("detect_gpu1")
        control.close()
