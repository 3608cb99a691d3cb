"""Requests of every kind to a gateway and to the Triton server behind it, and what became of each.

In: a kind's name. Out: its fate, one of

    answered         with what is known to be the right answer (for a wrong request: the refusal that it deserves)
    failed cleanly   with an error that its caller understands
    refused          with 429: too much at once
    wrong            with something else than the right answer
    lost: WHY        no answer within a minute, or one that just stopped
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from benchmarks.callers import Counts
from clients import ClientError, connect

SAMPLES = Path(__file__).parents[1] / "samples"
RECORDING = SAMPLES / "sense_and_sensibility.flac"
PICTURE = SAMPLES / "coffee.jpg"
HEARD, SEEN = "leisure to consider", '"cup"'
LIMIT_S = 60.0
QUESTION = "Question: What do you see?"


class Caller:
    """One caller, with connections of its own. gateway: http://host:port; grpc: host:port of the server itself."""

    def __init__(self, gateway: str, grpc: str) -> None:
        self._gateway = gateway
        self._http = httpx.Client(timeout=LIMIT_S, base_url=gateway)
        self._grpc = connect(f"grpc://{grpc}", timeout_s=LIMIT_S, shared_memory=True)
        self._kinds: dict[str, Callable[[], str]] = {
            "chat": self._chat,
            "transcribe": self._transcribe,
            "detect": self._detect,
            "ask": self._ask,
            "shared memory": self._shared_memory,
            "leaving": self._leave,
            "wrong request": self._wrong,
        }

    def ask(self, kind: str) -> str:
        """Ask once; the fate."""
        try:
            return self._kinds[kind]()
        except httpx.ConnectError:
            return "failed cleanly"  # nobody is there, and nothing was sent
        except httpx.HTTPError as error:
            return f"lost: {type(error).__name__}"

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()
        self._grpc.close()

    def _chat(self) -> str:
        return self._streamed([{"type": "text", "text": QUESTION}], lambda text: len(text) > 0)

    def _ask(self) -> str:
        """A recording and a picture with the question: every model has a part in the answer."""
        sound = {"type": "input_audio", "input_audio": {"data": encoded(RECORDING), "format": "flac"}}
        picture = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{encoded(PICTURE)}"}}
        return self._streamed([sound, picture, {"type": "text", "text": QUESTION}], lambda text: "cup" in text)

    def _streamed(self, parts: list[dict], is_right: Callable[[str], bool]) -> str:
        body = {"model": "llm", "messages": [{"role": "user", "content": parts}], "stream": True, "max_tokens": 32}
        with self._http.stream("POST", "/v1/chat/completions", json=body) as answer:
            lines = [line for line in answer.iter_lines() if line]
        if answer.status_code == 429:
            return "refused"
        if not lines or '"error"' in lines[-1]:
            return "failed cleanly" if lines else "lost: no answer"
        if lines[-1] != "data: [DONE]":
            return "lost: no end"
        return "answered" if is_right(text_of(lines)) else "wrong"

    def _transcribe(self) -> str:
        files = {"file": RECORDING.read_bytes()}
        return fate_of(self._http.post("/v1/audio/transcriptions", files=files, data={"model": "transcribe"}), HEARD)

    def _detect(self) -> str:
        return fate_of(self._http.post("/v1/detections", files={"file": PICTURE.read_bytes()}), SEEN)

    def _shared_memory(self) -> str:
        try:
            return "answered" if HEARD in self._grpc.transcribe(RECORDING).text else "wrong"
        except ClientError:
            return "failed cleanly"

    def _leave(self) -> str:
        """Begin a long answer and go away after its first words; answered means that it had begun."""
        body = {"model": "llm", "prompt": "Hello", "max_tokens": 1000, "stream": True, "ignore_eos": True}
        with self._http.stream("POST", "/v1/completions", json=body) as answer:
            first = next(answer.iter_lines(), "")
        if answer.status_code == 429:
            return "refused"
        return "answered" if first.startswith("data: {") and '"error"' not in first else "failed cleanly"

    def _wrong(self) -> str:
        answer = self._http.post("/v1/detections", files={"file": b"not a picture"})
        if answer.status_code == 400:
            return "answered"
        return fate_of(answer, "never") if answer.status_code != 200 else "wrong"


def encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def text_of(lines: Sequence[str]) -> str:
    """The text that a streamed chat answer is made of."""
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def fate_of(answer: httpx.Response, expected: str) -> str:
    if answer.status_code == 429:
        return "refused"
    if answer.status_code == 200:
        return "answered" if expected in answer.text else "wrong"
    return "failed cleanly" if '"error"' in answer.text else "lost: no reason"


class Traffic:
    """One thread for each of `kinds`, asking again and again. counts: (kind, fate) -> requests; fate "sent" is all.

    every_s: seconds from one request of a thread to its next; a slow answer moves the later ones.
    """

    def __init__(self, gateway: str, grpc: str, kinds: Sequence[str], every_s: float = 0.05) -> None:
        self.counts = Counts()
        self.kinds = tuple(dict.fromkeys("+".join(kinds).split("+")))
        self._gateway, self._grpc, self._every_s = gateway, grpc, every_s
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(kind.split("+"),)) for kind in kinds]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def total(self, fate: str) -> int:
        """Requests of all kinds with this fate; those that begin with "lost" count as one."""
        return sum(count for (_, one), count in tuple(self.counts.items()) if one.partition(":")[0] == fate)

    def _run(self, kinds: Sequence[str]) -> None:
        caller = Caller(self._gateway, self._grpc)
        number = 0
        while not self._ended.is_set():
            kind = kinds[number % len(kinds)]
            number += 1
            self.counts.add((kind, "sent"))
            self.counts.add((kind, caller.ask(kind)))
            self._ended.wait(self._every_s)
        caller.close()
