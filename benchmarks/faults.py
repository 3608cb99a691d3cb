"""Kills each model process of a running server in turn (kill -9), with requests of every kind running.

    python benchmarks/faults.py 8001 http://127.0.0.1:9000

`tritonkit serve` loads what died anew. For each model this prints how many requests were sent, answered, failed with a
clear answer, and lost (no answer within a minute, or one that just stopped), and how long the model was away.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

SAMPLES = Path(__file__).parents[1] / "samples"
LIMIT_S = 60.0
BACK_WITHIN_S = 180.0
CHAT = {"model": "llm", "messages": [{"role": "user", "content": "Question: What do you hear?"}], "stream": True}
NEEDED_BY = {
    "llm": "chat",
    "whisper_features": "transcribe",
    "whisper_encoder": "transcribe",
    "whisper_decoder": "transcribe",
    "yolo_preprocess": "detect",
    "yolo": "detect",
    "yolo_postprocess": "detect",
}


class Traffic:
    """Callers of every kind, each asking again when it was answered. counts: (kind, fate) -> requests."""

    def __init__(self, url: str) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._url, self._ended = url, threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(kind,)) for kind in ("chat", "transcribe", "detect") * 2
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self, kind: str) -> None:
        with httpx.Client(timeout=LIMIT_S) as client:
            while not self._ended.is_set():
                self.counts[kind, "sent"] += 1
                try:
                    fate = getattr(self, f"_{kind}")(client)
                except httpx.HTTPError as error:
                    fate = f"lost: {type(error).__name__}"
                self.counts[kind, fate] += 1
                time.sleep(0.05)

    def _chat(self, client: httpx.Client) -> str:
        with client.stream("POST", f"{self._url}/v1/chat/completions", json=CHAT) as answer:
            last = [line for line in answer.iter_lines() if line][-1]
        if answer.status_code == 200 and last == "data: [DONE]":
            return "answered"
        return "failed cleanly" if '"error"' in last else "lost: no end"

    def _transcribe(self, client: httpx.Client) -> str:
        sound = (SAMPLES / "sense_and_sensibility.flac").read_bytes()
        url = f"{self._url}/v1/audio/transcriptions"
        answer = client.post(url, files={"file": sound}, data={"model": "transcribe"})
        return fate_of(answer, "leisure to consider")

    def _detect(self, client: httpx.Client) -> str:
        picture = (SAMPLES / "coffee.jpg").read_bytes()
        return fate_of(client.post(f"{self._url}/v1/detections", files={"file": picture}), '"cup"')


def fate_of(answer: httpx.Response, expected: str) -> str:
    if answer.status_code == 200:
        return "answered" if expected in answer.text else "wrong"
    return "failed cleanly" if "error" in answer.json() else "lost: no reason"


def model_processes(grpc_port: int) -> dict[str, int]:
    """Model -> its living process, of the server on this port."""
    found: dict[str, int] = {}
    server = 0
    stubs = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if words[0].endswith("/tritonserver") and f"--grpc-port={grpc_port}" in words:
                server = int(place.name)
            elif words[0].endswith("triton_python_backend_stub"):
                stubs.append((parent, Path(words[1]).parent.parent.name, int(place.name)))
    for parent, model, pid in stubs:
        if parent == server:
            found[model] = pid
    return found


def kill(model: str, grpc_port: int, traffic: Traffic) -> dict[str, object]:
    """What became of the requests while one model died and came back."""
    kind = NEEDED_BY[model]
    before = Counter(traffic.counts)
    killed = model_processes(grpc_port)[model]
    os.kill(killed, signal.SIGKILL)
    began = time.monotonic()
    while model_processes(grpc_port).get(model, killed) == killed:
        check_time(began, model)
    answered = traffic.counts[kind, "answered"]
    while traffic.counts[kind, "answered"] < answered + 3:
        check_time(began, model)
    fates: Counter[str] = Counter()
    for (_, fate), count in (traffic.counts - before).items():
        fates[fate] += count
    return {"model": model, "answers_again_after_s": round(time.monotonic() - began, 1), **fates}


def check_time(began: float, model: str) -> None:
    if time.monotonic() - began > BACK_WITHIN_S:
        raise SystemExit(f"{model} did not come back within {BACK_WITHIN_S:g} s")
    time.sleep(0.1)


def main() -> None:
    """Kill, wait, count, print one line of JSON for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grpc_port", type=int)
    parser.add_argument("gateway")
    given = parser.parse_args()
    with Traffic(given.gateway) as traffic:
        while not all(traffic.counts[kind, "answered"] for kind in set(NEEDED_BY.values())):
            time.sleep(0.1)
        for model in NEEDED_BY:
            print(json.dumps(kill(model, given.grpc_port, traffic)), flush=True)
    print(json.dumps({f"{kind}, {fate}": count for (kind, fate), count in sorted(traffic.counts.items())}))


if __name__ == "__main__":
    main()
