"""Killed model processes under `tritonkit serve`, with requests running; what became of each of them is counted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from benchmarks.callers import Callers
from embedded import EmbeddedServer
from embedded.__main__ import MOST_RESTARTS
from embedded.flags import controlled
from embedded.restrict import management
from starter.revive import Reviver
from starter.server import Server
from starter.stubs import children, model_of, status

pytestmark = pytest.mark.server

KEY = "the key of this test's management"
ONCE = """
import os
import signal
import time
from pathlib import Path
import triton_python_backend_utils as pb_utils

DIES = Path(__file__).parents[3] / "dies"

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        if DIES.exists():
            DIES.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return config

    def execute(self, requests):
        time.sleep(0.02)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", one.as_numpy())])
                for one in (pb_utils.get_input_tensor_by_name(request, "X") for request in requests)]
"""
STREAM = """
import subprocess
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.engine = subprocess.Popen(["sleep", "1000"])

    def finalize(self):
        self.engine.kill()
        self.engine.wait()

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for _ in range(3):
                time.sleep(0.02)
                given = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", given)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CONFIG = """
backend: "python"
input [{name: "X" data_type: TYPE_FP32 dims: [1]}]
output [{name: "Y" data_type: TYPE_FP32 dims: [1]}]
instance_group [{kind: KIND_CPU}]
"""
STEP = 'step [{model_name: "once" model_version: -1 input_map {key: "X" value: "X"} output_map {key: "Y" value: "Y"}}]'
ENSEMBLE = CONFIG.replace('backend: "python"', 'platform: "ensemble"').replace(
    "instance_group [{kind: KIND_CPU}]", f"ensemble_scheduling {{{STEP}}}"
)


class Serve:
    """`tritonkit serve` as a person starts it. said: what it has told on stderr so far."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.repository = repository
        ports = ("--http-port", "0", "--grpc-port", "0", "--metrics-port", "0")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tritonkit", "serve", str(repository), *ports, "--log", str(folder / "server.log")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TRITONKIT_MANAGEMENT_KEY": KEY},
        )
        self.said: list[str] = []
        assert self.process.stdout and self.process.stderr
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        addresses = {}
        for line in self.process.stdout:
            if found := re.match(r"\s+(HTTP|gRPC)\s+(?:http://)?(\S+)", line):
                addresses[found[1]] = found[2]
            if len(addresses) == 2:
                break
        assert len(addresses) == 2, self.said
        self.http, self.grpc = addresses["HTTP"], addresses["gRPC"]

    def _read(self) -> None:
        with self.process.stderr as lines:  # type: ignore[union-attr]
            self.said.extend(lines)

    def server(self) -> int:
        """The tritonserver process."""
        found = self.find_server()
        assert found
        return found

    def find_server(self) -> int:
        """The tritonserver process; 0 while there is none."""
        return next((pid for one in children(self.process.pid) for pid in children(one)), 0)

    def model(self, name: str) -> int:
        """The living process of a model."""
        return next(pid for pid in children(self.server()) if model_of(pid) == name and status(pid)[0] != "Z")

    def is_ready(self, model: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.http}/v2/models/{model}/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:  # urllib's errors, and a server that is being started again
            return False

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._reader.join(5)
        assert self.process.stdout
        self.process.stdout.close()


def write_models(folder: Path) -> Path:
    """The repository of these tests."""
    decoupled = CONFIG + "model_transaction_policy {decoupled: true}"
    for name, config, source in (("once", CONFIG, ONCE), ("stream", decoupled, STREAM), ("joined", ENSEMBLE, "")):
        version = folder / "repository" / name / "1"
        version.mkdir(parents=True)
        version.with_name("config.pbtxt").write_text(config)
        if source:
            (version / "model.py").write_text(source)
    return folder / "repository"


def served(folder: Path) -> Iterator[Serve]:
    one = Serve(write_models(folder), folder)
    yield one
    one.stop()


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """One that all tests of its management share."""
    yield from served(tmp_path_factory.mktemp("revive"))


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Serve]:
    """One of the test's own, whose processes it may kill."""
    yield from served(tmp_path)


def wait_until(is_so: Callable[[], object], otherwise: str, limit_s: float = 30) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)


def given(value: float) -> list[Any]:
    tensor = triton.InferInput("X", [1], "FP32")
    tensor.set_data_from_numpy(np.array([value], dtype=np.float32))
    return [tensor]


def ask_once(client: Any, model: str, value: float) -> str:
    try:
        answer = client.infer(model, given(value), client_timeout=20).as_numpy("Y")
    except InferenceServerException:
        return "failed cleanly"
    return "answered" if answer == [value] else "wrong"


def asking(address: str, model: str) -> Callers:
    """Three callers that ask without pause, each with a number of its own."""

    @contextmanager
    def connected(number: int) -> Iterator[Callable[[], str]]:
        with triton.InferenceServerClient(address) as client:
            yield lambda: ask_once(client, model, number)

    return Callers(connected)


@pytest.mark.timing
def test_requests_of_a_killed_model_are_answered_or_fail_and_the_model_comes_back(mortal: Serve) -> None:
    """Those of an ensemble: the test of a server that hangs."""
    with asking(mortal.grpc, "once") as callers:
        callers.wait_for("answered", 20)
        os.kill(mortal.model("once"), signal.SIGKILL)
        wait_until(lambda: not mortal.is_ready("once"), "readiness never went down")
        wait_until(lambda: mortal.is_ready("once"), "readiness never came back")
        callers.wait_for("answered", 20)
    counts = callers.counts
    assert counts["failed cleanly"] > 0 and counts["wrong"] == 0
    assert counts["sent"] == counts["answered"] + counts["failed cleanly"]
    check_told(mortal, "once")


@pytest.mark.timing
def test_a_killed_decoupled_model_comes_back(mortal: Serve) -> None:

    def streamed() -> list[float]:
        found: list[float] = []
        ended = threading.Event()

        def take(result: Any, error: Any) -> None:
            if error is None and result.as_numpy("Y") is not None:
                found.append(float(result.as_numpy("Y")[0]))
            if error is not None or len(found) == 3:
                ended.set()

        with triton.InferenceServerClient(mortal.grpc) as client:
            client.start_stream(take)
            client.async_stream_infer("stream", given(7))
            ended.wait(20)
            client.stop_stream(cancel_requests=True)
        return found

    assert streamed() == [7, 7, 7]
    (engine,) = children(mortal.model("stream"))
    time.sleep(2.5)  # longer than between two looks below the models
    os.kill(mortal.model("stream"), signal.SIGKILL)
    wait_until(lambda: not mortal.is_ready("stream"), "readiness never went down")
    wait_until(lambda: mortal.is_ready("stream"), "readiness never came back")
    assert streamed() == [7, 7, 7]
    check_told(mortal, "stream")
    wait_until(lambda: status(engine)[0] in ("", "Z"), "what it had started lives on")


def check_told(serve: Serve, model: str) -> None:
    """Lines that a person understands; of one of two kinds, for Triton may abort when a process dies holding a lock."""

    def is_told() -> bool:
        told = "".join(list(serve.said))
        died = f"{model}: its process has died; loading it anew" in told
        is_again = re.search(rf"{model}: ready again after \d+\.\d s", told) is not None
        return (died and is_again) or "the server ended by itself; starting it again" in told

    wait_until(is_told, f"not told: {serve.said}")


def test_a_process_that_nobody_saw_alive_is_missed_all_the_same(tmp_path: Path) -> None:
    """Its zombie does not tell whose it was: the model that lacks a process is loaded anew, and no other."""
    managed = management("127.0.0.1", KEY)
    flags = (*managed.flags, *controlled(None, ()))
    said: list[str] = []
    with EmbeddedServer(write_models(tmp_path), flags=flags) as server:
        pids = {model_of(pid): pid for pid in children(server.server_pid())}
        os.kill(pids["once"], signal.SIGKILL)
        wait_until(lambda: status(pids["once"])[0] == "Z", "it lives")
        reviver = Reviver(Server(address=server.http, headers=managed.headers), said.append)

        def is_told() -> bool:
            reviver.poll(server.server_pid())
            return any("ready again" in line for line in said)

        wait_until(is_told, f"not told: {said}")
        with triton.InferenceServerClient(server.grpc) as client:
            assert [ask_once(client, model, 3) for model in ("once", "joined")] == ["answered", "answered"]
        assert status(pids["stream"])[0] == "S"
    assert said[0] == "once: its process has died; loading it anew" and len(said) == 2


@pytest.mark.timing
def test_a_server_that_hangs_or_ends_is_started_again_where_it_was(mortal: Serve) -> None:
    """When a process dies while its model is loaded anew, Triton waits for ever, and manages nothing meanwhile."""
    old = mortal.server()

    # Nothing is asked yet: a process that is killed while it works may take the server with it.
    os.kill(mortal.model("once"), signal.SIGKILL)
    wait_until(lambda: not mortal.is_ready("joined"), "readiness never went down")
    wait_until(lambda: mortal.is_ready("joined"), "readiness never came back")
    # The process that completes its config when it is loaded next will be gone.
    (mortal.repository.parent / "dies").touch()
    os.kill(mortal.model("once"), signal.SIGKILL)  # just when it is back
    with asking(mortal.grpc, "joined") as callers:
        wait_until(lambda: mortal.find_server() not in (0, old), "the server hangs", 60)
        wait_until(lambda: mortal.is_ready("joined"), "readiness never came back")
        callers.wait_for("answered", 10)
    counts = callers.counts
    assert counts["failed cleanly"] > 0 and counts["wrong"] == 0
    assert counts["sent"] == counts["answered"] + counts["failed cleanly"], counts
    told = "".join(mortal.said)
    assert told.count("once: its process has died; loading it anew") == 2
    assert "a model's process died while it loaded, and the server waits for it for ever; ending the server" in told
    assert "the server ended by itself; starting it again (its log so far: " in told
    assert len(list(mortal.repository.parent.glob("server-*.log"))) >= 1


def manage(serve: Serve, path: str, **headers: str) -> int:
    request = urllib.request.Request(
        f"http://{serve.http}{path}", b"{}", {"Content-Type": "application/json", **headers}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize(
    "path",
    [
        "/v2/repository/models/once/load",
        "/v2/repository/models/once/unload",
        "/v2/repository/index",
        "/v2/trace/setting",
        "/v2/logging",
    ],
)
def test_management_over_http_is_closed_without_the_key(serve: Serve, path: str) -> None:
    assert manage(serve, path) == 403
    assert manage(serve, path, **{"tritonkit-key": "a guess"}) == 403


def test_management_is_open_with_the_key(serve: Serve) -> None:
    assert manage(serve, "/v2/repository/index", **{"tritonkit-key": KEY}) == 200
    assert manage(serve, "/v2/repository/models/once/load", **{"tritonkit-key": KEY}) == 200


def test_a_broken_file_does_not_take_the_place_of_what_is_loaded(serve: Serve) -> None:
    file = serve.repository / "once" / "1" / "model.py"
    with asking(serve.grpc, "once") as callers:
        callers.wait_for("answered", 5)
        file.write_text("raise ValueError('broken')")
        try:
            assert manage(serve, "/v2/repository/models/once/load", **{"tritonkit-key": KEY}) == 400
            callers.wait_for("answered", 10)
        finally:
            file.write_text(ONCE)
        assert manage(serve, "/v2/repository/models/once/load", **{"tritonkit-key": KEY}) == 200
        callers.wait_for("answered", 10)
    assert callers.counts["sent"] == callers.counts["answered"], callers.counts


def test_management_over_grpc_is_closed_without_the_key(serve: Serve) -> None:
    with triton.InferenceServerClient(serve.grpc) as client:
        for call in (client.get_model_repository_index, client.get_log_settings, client.get_trace_settings):
            with pytest.raises(InferenceServerException) as caught:
                call()
            assert caught.value.status() == str(grpc.StatusCode.UNAVAILABLE)
        index = client.get_model_repository_index(headers={"triton-grpc-protocol-tritonkit-key": KEY}, as_json=True)
    assert {one["name"] for one in index["models"]} == {"once", "stream", "joined"}


def test_asking_a_model_needs_no_key(serve: Serve) -> None:
    with urllib.request.urlopen(f"http://{serve.http}/v2/models/once/config", timeout=5) as answer:
        assert json.load(answer)["name"] == "once"


@pytest.mark.timing
def test_a_server_that_ends_again_and_again_is_given_up(mortal: Serve) -> None:
    again = "the server ended by itself; starting it again (its log so far: "
    end = time.monotonic() + 120
    while mortal.process.poll() is None and time.monotonic() < end:
        if server := mortal.find_server():
            os.kill(server, signal.SIGKILL)
        time.sleep(0.1)
    assert mortal.process.returncode == 1
    mortal._reader.join(5)
    told = "".join(mortal.said)
    assert told.count(again) <= MOST_RESTARTS
    assert f"the server ended by itself {MOST_RESTARTS + 1} times within 10 minutes; look into" in told
