"""Shared memory with a real server: nothing stays behind, however a client ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients import ClientError, RequestRejected, RequestTimeout, connect
from clients.connection import transport_for
from clients.endpoint import endpoint
from clients.transports.messages import infer_message

pytestmark = [pytest.mark.server]
SAMPLES = np.ones(480_000, np.float32)
SHM = Path("/dev/shm")


def objects() -> list[str]:
    return [path.name for path in SHM.glob("tritonkit-client-*")]


def test_a_big_input_goes_through_a_region_and_a_small_one_does_not(
    stand_ins: Any, monkeypatch: pytest.MonkeyPatch, nothing_is_left: None
) -> None:
    with connect(stand_ins.grpc, shared_memory=True) as client:
        names: list[tuple[str, int]] = []
        register = client._transport.register_region

        def note(name: str, key: str, byte_size: int, timeout_s: float) -> None:
            names.append((name, byte_size))
            register(name, key, byte_size, timeout_s)

        monkeypatch.setattr(client._transport, "register_region", note)
        assert client.transcribe(SAMPLES).text.startswith("480000 samples, sum 480000")
        assert client.transcribe(SAMPLES[:100]).text.startswith("100 samples, sum 100")
        assert [size for _, size in names] == [1_920_000]


def test_while_a_request_runs_its_region_is_in_the_server_but_not_in_dev_shm(
    stand_ins: Any, nothing_is_left: None
) -> None:
    with connect(stand_ins.grpc, shared_memory=True) as client:
        events = client.ask(SAMPLES, words=100, pause_s=0.05)
        next(events)
        assert len(stand_ins.region_names()) == 1
        assert objects() == []
        events.close()


@pytest.mark.timing
def test_failure_timeout_and_interruption_leave_nothing(stand_ins: Any, nothing_is_left: None) -> None:
    with connect(stand_ins.grpc, shared_memory=True) as client:
        with pytest.raises(RequestRejected):
            list(client.ask(SAMPLES, fail_at=1))
        with pytest.raises(RequestTimeout):
            client.transcribe(SAMPLES, language="sleep 1", timeout_s=0.2)
        events = client.ask(SAMPLES, words=100, pause_s=0.05)
        next(events)
        with pytest.raises(KeyboardInterrupt):
            events.throw(KeyboardInterrupt())
        for event in client.ask(SAMPLES, words=100, pause_s=0.05):
            del event
            break


@pytest.mark.timing
def test_the_server_refuses_to_unregister_a_region_in_use_and_the_client_waits_for_its_end(
    stand_ins: Any, nothing_is_left: None
) -> None:
    """CLI-04."""
    transport = transport_for(endpoint(stand_ins.grpc))
    with connect(stand_ins.grpc, shared_memory=True) as client:
        with pytest.raises(RequestTimeout):
            client.transcribe(SAMPLES, language="sleep 2", timeout_s=0.1)
        (name,) = stand_ins.region_names()
        with pytest.raises(RequestRejected, match="currently in use"):
            transport.unregister_region(name, 5)
    assert stand_ins.region_names() == []
    transport.unregister_region(name, 5)  # a second time is no error, so nobody has to know who was first
    transport.close()


def test_an_answer_closed_after_its_client_leaves_nothing(stand_ins: Any, nothing_is_left: None) -> None:
    client = connect(stand_ins.grpc, shared_memory=True)
    events = client.ask(SAMPLES, words=100, pause_s=0.05)
    next(events)
    client.close()
    with pytest.raises(ClientError):
        list(events)


SCRIPT = """
import sys, time
import numpy as np
from clients import connect
client = connect({url!r}, shared_memory=True)
events = client.ask(np.ones(480_000, np.float32), words=1000, pause_s=0.05, log={log!r})
next(events)
print("begun", flush=True)
{end}
"""


def run_until_begun(stand_ins: Any, tmp_path: Path, end: str) -> subprocess.Popen[str]:
    script = SCRIPT.format(url=stand_ins.grpc, log=str(tmp_path / "cancelled"), end=end)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    return process


@pytest.mark.parametrize(
    ("end", "status"), [("", 0), ("sys.exit(3)", 3), ("raise RuntimeError('oops')", 1), ("del events, client", 0)]
)
def test_a_process_that_ends_in_the_middle_of_an_answer_leaves_nothing(
    stand_ins: Any, tmp_path: Path, nothing_is_left: None, end: str, status: int, wait: Callable[..., None]
) -> None:
    process = run_until_begun(stand_ins, tmp_path, end)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == status
    assert "Exception ignored" not in errors
    assert errors == "" or "oops" in errors
    wait((tmp_path / "cancelled").exists, "the model did not see that the caller went away")
    assert stand_ins.region_names() == []


def test_what_a_killed_client_leaves_is_cleared_by_the_next(
    stand_ins: Any, tmp_path: Path, nothing_is_left: None, wait: Callable[..., None]
) -> None:
    process = run_until_begun(stand_ins, tmp_path, "time.sleep(60)")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=15)
    assert objects() == []
    (left,) = stand_ins.region_names()
    wait((tmp_path / "cancelled").exists, "the model did not see that the caller went away")
    with connect(stand_ins.grpc, shared_memory=True) as client:
        client.transcribe(SAMPLES)
        assert left not in stand_ins.region_names()


def test_a_living_clients_region_is_not_cleared_by_another(
    stand_ins: Any, tmp_path: Path, nothing_is_left: None, wait: Callable[..., None]
) -> None:
    process = run_until_begun(stand_ins, tmp_path, "time.sleep(60)")
    try:
        (theirs,) = stand_ins.region_names()
        with connect(stand_ins.grpc, shared_memory=True) as client:
            client.transcribe(SAMPLES)
        assert stand_ins.region_names() == [theirs]
    finally:
        process.terminate()
        process.communicate(timeout=15)
    wait((tmp_path / "cancelled").exists, "the model did not see that the caller went away")
    with connect(stand_ins.grpc, shared_memory=True) as client:
        client.transcribe(SAMPLES)


def test_ten_megabytes_in_shared_memory_cost_the_connection_a_kilobyte(
    stand_ins: Any, monkeypatch: pytest.MonkeyPatch, nothing_is_left: None
) -> None:
    """The bytes of the message that goes to the server; how fast that is, benchmarks/peers measures (frame)."""
    sizes: list[int] = []

    def note(request: Any) -> Any:
        message = infer_message(request)
        sizes.append(message.ByteSize())
        return message

    monkeypatch.setattr("clients.transports.grpc.infer_message", note)
    samples = np.ones(2_500_000, np.float32)
    with connect(stand_ins.grpc, shared_memory=True) as shared, connect(stand_ins.grpc) as plain:
        assert shared.transcribe(samples).text == plain.transcribe(samples).text
    through_memory, in_the_message = sizes
    assert through_memory < 1000 and in_the_message > samples.nbytes
