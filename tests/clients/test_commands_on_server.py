"""The commands as a person runs them, in a process of their own, with real files and a real server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("nothing_is_left")]
CHECKOUT = Path(__file__).parents[2]
RECORDING, PHOTO = CHECKOUT / "samples/sense_and_sensibility.flac", CHECKOUT / "samples/coffee.jpg"
LONG = ["--param", "words=1000", "--param", "pause_s=0.05"]


def start(url: str, *arguments: str | Path, stdin: Any = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """The command; Ctrl-C works in it even if this process was started with it ignored."""
    command = [sys.executable, "-m", "clients", *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env={**os.environ, "TRITONKIT_URL": url},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def run(url: str, *arguments: str | Path, stdin: Any = subprocess.DEVNULL) -> tuple[int, str, str]:
    process = start(url, *arguments, stdin=stdin)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_transcribe_and_detect_read_files_and_stdin(stand_ins: Any) -> None:
    status, out, err = run(stand_ins.grpc, "transcribe", RECORDING, "--shared-memory")
    assert (status, out.split(",")[0], err) == (0, "113600 samples", "")
    with PHOTO.open("rb") as file:
        status, out, err = run(stand_ins.http, "detect", "-", "--json", stdin=file)
    assert (status, json.loads(out)["items"][0]["label"], err) == (0, f"{PHOTO.stat().st_size} bytes", "")


def test_ask_streams_json_lines(stand_ins: Any) -> None:
    arguments = ["ask", "--audio", RECORDING, "--image", PHOTO, "What?", "--json", "--param", "words=1"]
    status, out, err = run(stand_ins.grpc, *arguments)
    assert (status, err) == (0, "")
    assert [json.loads(line)["event"] for line in out.splitlines()] == ["heard", "seen", "delta", "finished"]


def test_a_refusal_and_a_lost_server_are_said_on_stderr(stand_ins: Any) -> None:
    status, out, err = run(stand_ins.grpc, "chat", "Hi", "--param", "fail_at=0")
    assert (status, out, err) == (1, "", "llm: SAMPLING_PARAMETERS: word 0; all words; ask for less\n")
    status, out, err = run("grpc://127.0.0.1:9", "chat", "Hi")
    assert (status, out) == (1, "")
    assert err.startswith("grpc://127.0.0.1:9: ") and "tritonkit serve" in err and "Traceback" not in err


@pytest.mark.timing
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_signal_stops_the_answer_on_the_server(
    stand_ins: Any, tmp_path: Path, wait: Callable[..., None], number: signal.Signals, status: int, protocol: str
) -> None:
    log = tmp_path / "cancelled"
    process = start(getattr(stand_ins, protocol), "chat", "Hi", *LONG, "--param", f"log={json.dumps(str(log))}")
    assert process.stdout is not None and process.stdout.read(6) == "word0 "
    process.send_signal(number)
    begin = time.monotonic()
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (status, "")
    assert time.monotonic() - begin < 3
    wait(log.exists, "the model did not see that the caller went away")


def test_an_interrupted_recording_leaves_no_shared_memory(stand_ins: Any) -> None:
    process = start(stand_ins.grpc, "transcribe", RECORDING, "--language", "sleep 2", "--shared-memory")
    end = time.monotonic() + 10
    while not stand_ins.region_names():
        assert time.monotonic() < end and process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, "")
    assert stand_ins.region_names() == []


def test_a_reader_that_goes_away_is_no_problem_and_stops_the_server(
    stand_ins: Any, tmp_path: Path, wait: Callable[..., None]
) -> None:
    log = tmp_path / "cancelled"
    process = start(stand_ins.grpc, "chat", "Hi", *LONG, "--param", f"log={json.dumps(str(log))}")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(6)
    process.stdout.close()
    assert process.wait(10) == 0
    assert process.stderr.read() == ""
    process.stderr.close()
    wait(log.exists, "the model did not see that the caller went away")
