"""The life of a real server: start, readiness, failures in plain words, and an end that leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton

from embedded import CannotStart, EmbeddedServer, Load, LoadFailed, NotReadyInTime, PortInUse, ServerDied, ServerError
from starter.stubs import children

pytestmark = pytest.mark.server

WriteModel = Callable[..., Path]
Serve = Callable[..., EmbeddedServer]
CONFIG = """
backend: "python"
input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }
"""
ENSEMBLE = """
platform: "ensemble"
input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "B" data_type: TYPE_FP32 dims: [ 1 ] }
ensemble_scheduling {
  step {
    model_name: "echo" model_version: -1
    input_map { key: "X" value: "A" }
    output_map { key: "Y" value: "B" }
  }
}
"""


def ask(server: EmbeddedServer, model: str, into: str, out: str) -> float:
    """One request with the number 2."""
    with triton.InferenceServerClient(server.grpc) as client:
        given = triton.InferInput(into, [1], "FP32").set_data_from_numpy(np.array([2], np.float32))
        return float(client.infer(model, [given], client_timeout=20).as_numpy(out)[0])


def regions(server: EmbeddedServer) -> list[str]:
    """Shared memory regions of this server's models."""
    return [name for name in os.listdir("/dev/shm") if name.startswith(server.shm_prefix)]


def wait_until(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    """Return once the condition holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "still not so"
        time.sleep(0.05)


def is_there(pid: int) -> bool:
    """Whether a process lives (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def family(pid: int) -> list[int]:
    """A process and all below it."""
    return [pid, *(each for child in children(pid) for each in family(child))]


def test_an_ensemble_brings_its_steps_and_nothing_else(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    write_model("other", code="raise RuntimeError('not asked for')")
    write_model("pipeline", ENSEMBLE, None)
    loads: list[Load] = []
    with serve(load=["pipeline"], on_load=loads.append) as server:
        assert ask(server, "pipeline", "A", "B") == 2
        assert ask(server, "echo", "X", "Y") == 2
        processes = family(server._process.pid)
        assert len(processes) == 3  # our supervisor, the server, one Python model
        assert len(regions(server)) == 1
    assert {(load.model, load.state) for load in loads} == {
        (model, state) for model in ("echo", "pipeline") for state in ("loading", "ready")
    }
    assert not any(is_there(pid) for pid in processes)
    assert regions(server) == []
    assert "successfully loaded 'pipeline'" in server.log_file.read_text()


def test_a_temporary_log_is_removed_after_a_good_end(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    with serve(log_file=None) as server:
        assert server.log_file.exists()
    assert not server.log_file.exists()


def test_addresses_are_on_this_machine_only_and_known_after_start(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    server = serve()
    with pytest.raises(ServerError, match=r"no address before start\(\)"):
        server.http  # noqa: B018
    with server:
        assert server.http.startswith("127.0.0.1:")
        assert server.metrics == f"http://127.0.0.1:{server.ports.taken['metrics']}/metrics"
        for port in server.ports.taken.values():
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port), timeout=5)  # refused by who listens on one address only


def test_a_taken_port_is_told_before_anything_is_started(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = serve(grpc_port=listener.getsockname()[1])
        with pytest.raises(PortInUse, match="--grpc-port"):
            server.start()
    assert not server.is_running


def test_an_unknown_model_is_told_before_anything_is_started(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    server = serve(load=["ecko"])
    with pytest.raises(CannotStart, match="ecko: not in .*, which holds: echo"):
        server.start()


BROKEN = {
    "imports": (CONFIG, "import pandas_of_nowhere", "No module named 'pandas_of_nowhere'", "holds `pandas_of_nowhere`"),
    "config": (CONFIG + "nonsense: 1", "", 'no field named "nonsense"', "does not know the field `nonsense`"),
    "gpu": (CONFIG + "instance_group { kind: KIND_GPU }", "", "no GPUs are available", "use KIND_CPU"),
    "backend": (CONFIG.replace("python", "tensorrt"), "", "backend 'tensorrt'", "on a GPU image"),
    "file": (CONFIG, None, "model file not found", "Put the model's code there"),
    "nothing": (CONFIG, "x = 1", "no attribute 'TritonPythonModel'", "must define `class TritonPythonModel`"),
    "ensemble": (
        ENSEMBLE.replace('"B" data_type: TYPE_FP32', '"B" data_type: TYPE_INT32'),
        None,
        "inconsistent data type",
        "one data type at both ends",
    ),
}


def test_every_model_that_does_not_load_is_told_with_its_reason(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    for name, (config, code, _, _) in BROKEN.items():
        write_model(name, config, code)
    server = serve()
    began = time.monotonic()
    with pytest.raises(LoadFailed) as failure:
        server.__enter__()
    assert time.monotonic() - began < 25
    problems = {problem.model: problem for problem in failure.value.problems}
    assert problems.keys() <= BROKEN.keys()
    # A missing file hangs the server: what it had not come to by then is not told.
    assert {"imports", "config", "gpu", "backend", "file"} <= problems.keys()
    for name, problem in problems.items():
        assert BROKEN[name][2] in problem.words
        assert BROKEN[name][3] in problem.advice
    assert problems["imports"].where.endswith("/imports/1/model.py, line 1, in <module>")
    assert str(server.log_file) in str(failure.value)
    assert not server.is_running and regions(server) == []


def test_an_ensemble_that_is_refused_is_told(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    write_model("pipeline", BROKEN["ensemble"][0], None)
    with pytest.raises(LoadFailed, match="pipeline: .*inconsistent data type"), serve():
        pass


@pytest.mark.timing
def test_a_model_whose_process_dies_while_loading_is_told_at_once(write_model: WriteModel, serve: Serve) -> None:
    write_model("crash", code="import os, time\ntime.sleep(1)\nos.kill(os.getpid(), 9)")
    began = time.monotonic()
    with (
        pytest.raises(LoadFailed, match=r"crash: its process was ended by signal 9 \(SIGKILL\) while it loaded"),
        serve(),
    ):
        pass
    assert time.monotonic() - began < 20


def test_a_model_that_takes_too_long_is_named(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    write_model("slow", code="import time\ntime.sleep(60)")
    with pytest.raises(NotReadyInTime, match=r"not ready after 4 s; still loading: slow"), serve(ready_timeout_s=4):
        pass


def test_a_wrong_flag_is_told_in_the_servers_words(write_model: WriteModel, serve: Serve) -> None:
    write_model("echo")
    with pytest.raises(ServerDied, match="no-such-flag"), serve(flags=["--no-such-flag=1"]):
        pass


@pytest.mark.timing
def test_waiting_ends_when_the_server_is_killed(write_model: WriteModel, serve: Serve) -> None:
    write_model("slow", code="import time\ntime.sleep(60)")
    server = serve()
    server.start()
    wait_until(lambda: server.server_pid() != 0)
    os.kill(server.server_pid(), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(ServerDied, match="ended by itself"):
        server.wait_ready()
    assert time.monotonic() - began < 8


STUBBORN = """
import subprocess, sys, triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        self.child = subprocess.Popen([sys.executable, "-c", code], executable="{python}", start_new_session=True)

    def execute(self, requests):
        import time

        time.sleep(600)
"""


@pytest.mark.timing
def test_stopping_ends_what_ignores_it_too(write_model: WriteModel, serve: Serve) -> None:
    write_model("stubborn", code=STUBBORN.replace("{python}", sys.executable))
    with serve(stop_timeout_s=1) as server:
        processes = family(server._process.pid)
        assert len(processes) == 4  # supervisor, server, model, and the process that the model started
        with triton.InferenceServerClient(server.grpc) as client:
            given = triton.InferInput("X", [1], "FP32").set_data_from_numpy(np.array([2], np.float32))
            client.async_infer("stubborn", [given], lambda result, error: None)
            began = time.monotonic()
            server.stop()
    assert time.monotonic() - began < 6
    assert not any(is_there(pid) for pid in processes)
    assert regions(server) == []


def test_nothing_is_left_when_the_starter_is_killed(write_model: WriteModel, tmp_path: Path, checkout: Path) -> None:
    write_model("stubborn", code=STUBBORN.replace("{python}", sys.executable))
    code = f"""
        import time
        from pathlib import Path
        from embedded import EmbeddedServer
        server = EmbeddedServer(Path({str(tmp_path / "repository")!r}), cache=Path({str(checkout / ".cache")!r}),
                                log_file=Path({str(tmp_path / "log")!r}), stop_timeout_s=1)
        server.start()
        server.wait_ready()
        print(server._process.pid, server.shm_prefix, flush=True)
        time.sleep(600)
    """
    starter = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    )
    with starter:
        assert starter.stdout is not None
        pid, prefix = starter.stdout.readline().split()
        processes = family(int(pid))
        assert len(processes) == 4
        starter.kill()
        wait_until(lambda: not any(is_there(each) for each in processes))
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(prefix)]
