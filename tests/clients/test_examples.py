"""The examples as a person runs them: on the real pipelines, and on stand-ins whose every answer is known."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.server
CHECKOUT = Path(__file__).parents[2]
RECORDING, PHOTO = "samples/sense_and_sensibility.flac", "samples/coffee.jpg"
PHOTO_BYTES = (CHECKOUT / PHOTO).stat().st_size
QUESTION = "What is there?"


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def python(name: str, *arguments: str) -> str:
    return run(sys.executable, f"examples/{name}", *arguments)


def address(url: str) -> str:
    return url.partition("://")[2]


def test_plain_grpc(stand_ins: Any) -> None:
    assert python("plain_grpc.py", RECORDING, address(stand_ins.grpc)).startswith("113600 samples")


def test_plain_grpc_stream(stand_ins: Any) -> None:
    transcript, detections, answer = python(
        "plain_grpc_stream.py", RECORDING, PHOTO, QUESTION, address(stand_ins.grpc)
    ).splitlines()
    assert transcript == "TRANSCRIPT: 113600 samples"
    found = json.loads(detections.removeprefix("DETECTIONS: "))["detections"]
    assert found[0]["label"] == f"{PHOTO_BYTES} bytes"
    assert answer == "word0 word1 word2 "


def test_plain_http(stand_ins: Any) -> None:
    assert python("plain_http.py", PHOTO, address(stand_ins.http)) == f"{PHOTO_BYTES} bytes 0.50 [0, 1, -1, -1]\n"


def curl(url: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The answer of /infer and the events of /generate_stream."""
    infer, *events = [line for line in run("sh", "examples/curl.sh", PHOTO, QUESTION, url).splitlines() if line]
    return json.loads(infer), [json.loads(line.removeprefix("data: ")) for line in events]


def test_curl(stand_ins: Any) -> None:
    answer, events = curl(stand_ins.http)
    assert f"{PHOTO_BYTES} bytes" in answer["outputs"][0]["data"][0]
    assert [event.get("TEXT") for event in events] == ["word0 ", "word1 ", "word2 ", None]
    assert events[-1]["FINISH_REASON"] == "length"


def test_with_tritonkit(stand_ins: Any) -> None:
    lines = python("with_tritonkit.py", RECORDING, PHOTO, QUESTION, stand_ins.grpc).splitlines()
    assert lines[0].startswith("113600 samples")
    assert lines[2:] == ["heard: 113600 samples", f"seen: ['{PHOTO_BYTES} bytes']", "word0 word1 word2 "]


def test_with_asyncio(stand_ins: Any) -> None:
    lines = python("with_asyncio.py", RECORDING, PHOTO, QUESTION, stand_ins.grpc).splitlines()
    assert lines[0].startswith("113600 samples")
    assert lines[1:] == [f"['{PHOTO_BYTES} bytes']", "word0 word1 word2 "]


def test_the_examples_agree_on_the_real_pipelines(served: Any) -> None:
    """What plain tritonclient, curl and our client say is the same, and it is what was said and shown."""
    transcript = python("plain_grpc.py", RECORDING, served.grpc).strip()
    assert re.search(r"John Dashwood had then leisure to consider", transcript)
    boxes = python("plain_http.py", PHOTO, served.http).splitlines()
    assert any(line.startswith("cup ") for line in boxes)
    streamed = python("plain_grpc_stream.py", RECORDING, PHOTO, QUESTION, served.grpc).splitlines()
    assert streamed[0].removeprefix("TRANSCRIPT: ").strip() == transcript
    labels = [one["label"] for one in json.loads(streamed[1].removeprefix("DETECTIONS: "))["detections"]]
    assert labels == [line.rpartition(" [")[0].rpartition(" ")[0] for line in boxes]
    ours = python("with_tritonkit.py", RECORDING, PHOTO, QUESTION, f"grpc://{served.grpc}").splitlines()
    assert ours[0].strip() == transcript
    assert f"seen: {labels}" in ours
    assert ours[-1] == streamed[-1]  # both at temperature 0
    assert python("with_asyncio.py", RECORDING, PHOTO, QUESTION, f"grpc://{served.grpc}").startswith(ours[0])
    answer, events = curl(f"http://{served.http}")
    found = json.loads(answer["outputs"][0]["data"][0])["detections"]
    assert [one["label"] for one in found] == labels
    assert "".join(event.get("TEXT", "") for event in events)


def code_in_the_docs() -> list[str]:
    """The Python code of docs/clients.md, block by block."""
    return re.findall(r"```python\n(.*?)```", (CHECKOUT / "docs/clients.md").read_text(), re.DOTALL)


def test_the_code_in_the_docs_runs(stand_ins: Any) -> None:
    calls, _lifeline, _, in_tests = code_in_the_docs()
    calls = calls.replace("grpc://127.0.0.1:8001", stand_ins.grpc)
    lines = run(sys.executable, "-c", calls).splitlines()
    assert lines[2:] == [
        "heard: 113600 samples",
        f"seen: ['{PHOTO_BYTES} bytes']",
        "word0 word1 word2 ",
        "(length after 3 tokens)",
    ]
    run(sys.executable, "-c", in_tests)
