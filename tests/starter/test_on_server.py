"""The program on the real server: order, one load each, a dead streaming model that comes back, a good end."""

from __future__ import annotations

import itertools
import os
import queue
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

from embedded.assemble import assemble_backends
from embedded.environment import server_environment
from embedded.ports import Ports
from embedded.wheel import find_wheel

pytestmark = pytest.mark.server

TENSORS = """
input { name: "X" data_type: TYPE_INT32 dims: [1] }
output { name: "Y" data_type: TYPE_INT32 dims: [1] }
instance_group { kind: KIND_CPU count: 1 }
"""
# Only one of two models may run at a time: Triton's rate limiter, which `starter` switches on for such a config.
LIMITED = TENSORS.replace("count: 1 }", 'count: 1 rate_limiter { resources { name: "gpu" count: 1 } } }')
SERVED = """
import os
import time
from pathlib import Path

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            if {dies} and given[0] == 13:
                os._exit(3)
            if given[0] >= 100:
                began = time.monotonic()
                time.sleep(0.1)
                with Path(os.environ["TIMES"]).open("a") as times:
                    times.write(f"{{began}} {{time.monotonic()}}\\n")
            answer = pb_utils.InferenceResponse([pb_utils.Tensor("Y", given + 1)])
            if {dies}:
                request.get_response_sender().send(answer, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            else:
                answers.append(answer)
        return None if {dies} else answers
"""
BOTH = """
platform: "ensemble"
input { name: "X" data_type: TYPE_INT32 dims: [1] }
output { name: "Y" data_type: TYPE_INT32 dims: [1] }
ensemble_scheduling {
  step { model_name: "plain" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "m" } }
  step { model_name: "mortal" model_version: -1 input_map { key: "X" value: "m" } output_map { key: "Y" value: "Y" } }
}
"""


def _repository(folder: Path) -> Path:
    configs = {
        "plain": f'backend: "python"{LIMITED}',
        "rival": f'backend: "python"{LIMITED}',
        "mortal": f'backend: "python"{TENSORS}model_transaction_policy {{ decoupled: true }}',
        "a_both": BOTH,
        "unwanted": f'backend: "python"{TENSORS}',
    }
    for name, config in configs.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(config)
        if name != "a_both":
            (folder / name / "1" / "model.py").write_text(SERVED.format(dies=name == "mortal"))
    (folder / "mortal" / "1" / "model.json").write_text("{}")
    return folder


class Started:
    """The program, its ports and its log."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        wheel = find_wheel()
        self.ports = Ports("127.0.0.1", dict.fromkeys(("http", "grpc", "metrics"), 0))
        self.ports.take()
        self.http, self.grpc = self.ports.taken["http"], self.ports.taken["grpc"]
        self.log = folder / "log"
        command = [
            *(
                sys.executable,
                "-m",
                "starter",
                "run",
                "--entry",
                "a_both",
                "--entry",
                "rival",
                "--http",
                f"127.0.0.1:{self.http}",
            ),
            *("--repository", str(_repository(folder / "models")), "--", str(wheel.tritonserver)),
            f"--backend-directory={assemble_backends(wheel, checkout / '.cache' / 'embedded')}",
            *(f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")),
            "--exit-timeout-secs=3",
            *(f"--{name}-port={port}" for name, port in self.ports.taken.items()),
        ]
        environment = server_environment(dict(os.environ), wheel=wheel, python=Path(sys.executable), cpu_threads=1)
        self.times = folder / "times"
        environment |= {"PYTHONPATH": str(checkout), "TIMES": str(self.times)}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def told(self) -> list[str]:
        """The program's own lines."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [line.removeprefix("starter  ") for line in lines if line.startswith("starter  ")]

    def wait_for(self, fits: Callable[[list[str]], bool], timeout_s: float = 90.0) -> list[str]:
        """The lines, once they fit."""
        deadline = time.monotonic() + timeout_s
        while not fits(self.told()):
            assert self.process.poll() is None, self.log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.1)
        return self.told()

    def ask(self, number: int) -> int | str:
        """The answer of the entry model, or its error."""
        got: queue.Queue[int | str] = queue.Queue()
        with grpcclient.InferenceServerClient(f"127.0.0.1:{self.grpc}") as client:
            client.start_stream(lambda result, error: got.put(str(error) if error else int(result.as_numpy("Y")[0])))
            tensor = grpcclient.InferInput("X", [1], "INT32")
            tensor.set_data_from_numpy(np.array([number], np.int32))
            try:
                client.async_stream_infer("a_both", [tensor])
                return got.get(timeout=30)
            finally:
                client.stop_stream(cancel_requests=True)


@pytest.fixture(scope="module")
def started(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    one = Started(checkout, tmp_path_factory.mktemp("starter"))
    try:
        one.wait_for(lambda told: any(line.startswith("ready after") for line in told))
        yield one
    finally:
        one.process.send_signal(signal.SIGTERM)
        try:
            one.process.wait(40)
        except subprocess.TimeoutExpired:
            one.process.kill()
            raise
        finally:
            one.ports.release()


def test_models_are_loaded_once_one_at_a_time_and_in_order(started):
    told = [re.sub(r"\d+\.\d s", "N s", line) for line in started.told()][:9]
    assert told == [
        "1/4  plain   loading",
        "1/4  plain   ready after N s",
        "2/4  rival   loading",
        "2/4  rival   ready after N s",
        "3/4  mortal  loading (language model)",
        "3/4  mortal  ready after N s",
        "4/4  a_both  loading (ensemble)",
        "4/4  a_both  ready after N s",
        "ready after N s: a_both, rival",
    ]
    log = started.log.read_text(errors="replace")
    loads = re.findall(r'"(loading|successfully loaded)[ :\']+(\w+)', log)
    assert loads == [
        (word, name) for name in ("plain", "rival", "mortal", "a_both") for word in ("loading", "successfully loaded")
    ]
    assert started.ask(1) == 3


def test_models_that_take_turns_never_run_at_the_same_time(started):
    with grpcclient.InferenceServerClient(f"127.0.0.1:{started.grpc}") as client:
        tensor = grpcclient.InferInput("X", [1], "INT32")
        tensor.set_data_from_numpy(np.array([100], np.int32))
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda name: client.infer(name, [tensor]), ["plain", "rival"] * 3))
    assert [int(one.as_numpy("Y")[0]) for one in answers] == [101] * 6
    spans = sorted(tuple(map(float, line.split())) for line in started.times.read_text().splitlines())
    assert len(spans) == 6
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans)), spans


def test_nobody_else_may_load_models(started):
    request = urllib.request.Request(
        f"http://127.0.0.1:{started.http}/v2/repository/models/plain/unload", b"{}", method="POST"
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    refused.value.close()
    assert refused.value.code == 403


@pytest.mark.timing
def test_a_dead_streaming_model_comes_back(started):
    before = len(started.told())
    assert "Stub process 'mortal_0_0' is not healthy" in str(started.ask(12))
    told = started.wait_for(lambda told: any("ready again" in line for line in told[before:]))[before:]
    assert "mortal: its process has died; loading it anew" in told
    assert started.ask(20) == 22
    log = started.log.read_text(errors="replace")
    assert len(re.findall(r'"loading: plain:1"', log)) == 1


def test_check_says_whether_the_entry_can_be_asked(started, checkout):
    def check(entry: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "starter", "check", "--entry", entry, "--http", f"127.0.0.1:{started.http}"]
        return subprocess.run(command, capture_output=True, text=True, cwd=checkout)

    assert check("a_both").returncode == 0
    assert (check("unwanted").returncode, check("unwanted").stderr) == (1, "not ready: unwanted\n")


def test_it_ends_with_the_server_when_told_to(started):
    started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(40) == 0
