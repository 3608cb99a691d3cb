"""The command against a real server with stand-in models, killed in the middle among other things."""

import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from pyarrow import parquet

pytestmark = pytest.mark.server


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answered(server: Any, model: str) -> int:
    """How many requests the model has answered since the server's start."""
    with urllib.request.urlopen(f"{server.http}/v2/models/{model}/stats") as answer:
        return json.load(answer)["model_stats"][0]["inference_stats"]["success"]["count"]


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for number in range(5):
        soundfile.write(folder / f"{number}.wav", np.zeros(100 + number, dtype=np.float32), 16000)
    (folder / "broken.wav").write_bytes(b"no sound")
    return folder


def test_folder_of_recordings_becomes_jsonl_and_a_broken_one_a_reason(
    server: Any, run: Callable, lines: Callable, recordings: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    status, said = run(recordings, out, "--pipeline", "transcribe", "--url", server.grpc, "--option", "language=en")
    assert status == 1 and "1 rows could not be done" in said
    assert [(row["id"], row["text"].split(",")[0]) for row in lines(out)] == [
        (f"{number}.wav", f"{100 + number} samples") for number in range(5)
    ]
    (bad,) = lines(Path(f"{out}.bad.jsonl"))
    assert bad["id"] == "broken.wav" and "no sound file" in bad["reason"]
    assert not list(tmp_path.glob("*.partial")) and not list(tmp_path.glob("*.part"))


def test_parquet_output_has_the_columns_of_the_pipeline(
    server: Any, run: Callable, recordings: Path, tmp_path: Path
) -> None:
    (recordings / "broken.wav").unlink()
    out = tmp_path / "out.parquet"
    status, said = run(recordings, out, "--pipeline", "transcribe", "--url", server.grpc)
    assert status == 0, said
    table = parquet.read_table(out)
    assert table.column_names == ["id", "number", "text", "language", "segments"]
    assert table["segments"].to_pylist()[0][0]["tokens"] == [1, 2]


def test_rows_of_every_pipeline(server: Any, run: Callable, lines: Callable, tmp_path: Path) -> None:
    picture = {"base64": "AAAA"}
    cases = {
        "detect": ({"image": picture, "iou": 0.5}, lambda row: row["items"][0]["label"] == "3 bytes"),
        "llm": ({"prompt": "Hello", "words": 2}, lambda row: row["text"] == "word0 word1 "),
        "assistant": (
            {"image": picture, "question": "What?", "words": 1},
            lambda row: row["detections"]["items"][0]["label"] == "3 bytes" and row["completion_tokens"] == 1,
        ),
        "echo": ({"X": [1.5, 2]}, lambda row: row["Y"] == [1.5, 2.0]),
    }
    for pipeline, (fields, is_right) in cases.items():
        source, out = write_rows(tmp_path / f"{pipeline}.jsonl", [fields]), tmp_path / f"{pipeline}.out.jsonl"
        status, said = run(source, out, "--pipeline", pipeline, "--url", server.grpc)
        assert status == 0, said
        assert is_right(lines(out)[0]), lines(out)


@pytest.mark.slow
@pytest.mark.timing
def test_killed_again_and_again_every_row_is_there_once_and_finished_ones_are_not_done_again(
    server: Any, start: Callable, lines: Callable, tmp_path: Path
) -> None:
    rows, in_flight = 120, 4
    soundfile.write(tmp_path / "a.wav", np.zeros(160, dtype=np.float32), 16000)
    source = write_rows(tmp_path / "in.jsonl", [{"id": f"n{n}", "audio": "a.wav"} for n in range(rows)])
    out, before, kills = tmp_path / "out.jsonl", answered(server, "transcribe"), 0
    journal = Path(f"{out}.partial")
    words = (source, out, "--pipeline", "transcribe", "--url", server.grpc, "--in-flight", in_flight)
    words += ("--option", "language=sleep 0.02")
    for kept in (1, 37, 80, rows):
        process = start(*words)
        end = time.monotonic() + 120
        while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > kept):
            assert time.monotonic() < end
            time.sleep(0.002)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    if not out.exists():
        process = start(*words)
        assert process.wait(120) == 0, process.stderr.read()
    assert [row["id"] for row in lines(out)] == [f"n{number}" for number in range(rows)]
    assert kills >= 3
    assert rows <= answered(server, "transcribe") - before <= rows + kills * in_flight


@pytest.mark.timing
def test_in_flight_is_bounded_and_kept_full(server: Any, run: Callable, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"prompt": "x", "words": 1, "pause_s": 0.05}] * 60)
    status, said = run(source, tmp_path / "out.jsonl", "--pipeline", "llm", "--url", server.grpc, "--in-flight", 6)
    assert status == 0, said
    share = int(said.split("was reached ")[1].split("%")[0])
    assert share >= 80, said


@pytest.mark.timing
def test_server_that_comes_back_in_time_costs_no_row(
    stand_in_module: Any, start: Callable, lines: Callable, tmp_path: Path
) -> None:
    from embedded import EmbeddedServer

    repository = stand_in_module.write_repository(tmp_path / "repository")
    source = write_rows(tmp_path / "in.jsonl", [{"prompt": "x", "words": 1, "pause_s": 0.03}] * 100)
    out = tmp_path / "out.jsonl"
    ports = {}
    with EmbeddedServer(repository, load=("llm",), stop_timeout_s=1, cpu_threads=1) as server:
        ports["grpc_port"] = int(server.grpc.rpartition(":")[2])
        process = start(source, out, "--pipeline", "llm", "--url", f"grpc://{server.grpc}", "--in-flight", 4)
        journal = Path(f"{out}.partial")
        end = time.monotonic() + 120
        while not (journal.exists() and journal.read_bytes().count(b"\n") > 10):
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.01)
        threading.Timer(0, server.stop, kwargs={"timeout_s": 0}).run()
    with EmbeddedServer(repository, load=("llm",), stop_timeout_s=1, cpu_threads=1, **ports):
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert len(lines(out)) == 100


def test_server_that_stays_away_ends_the_batch_with_what_to_do(run: Callable, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"prompt": "x"}])
    words = (source, tmp_path / "out.jsonl", "--pipeline", "llm", "--url", "grpc://127.0.0.1:9", "--patience", 0.5)
    status, said = run(*words)
    assert status == 1 and "Start one with: tritonkit serve" in said


def test_server_of_its_own_is_started_and_ended(
    stand_in_module: Any, run: Callable, lines: Callable, tmp_path: Path
) -> None:
    repository = stand_in_module.write_repository(tmp_path / "repository")
    source = write_rows(tmp_path / "in.jsonl", [{"X": [number]} for number in range(3)])
    status, said = run(source, tmp_path / "out.jsonl", "--pipeline", "echo", "--repository", repository)
    assert status == 0, said
    assert [row["Y"] for row in lines(tmp_path / "out.jsonl")] == [[0.0], [1.0], [2.0]]
