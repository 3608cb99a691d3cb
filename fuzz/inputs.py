"""`python -m fuzz.inputs model_repository`: odd requests to a gateway and the server behind it, both started for this.

Out: what must not have happened: a status of 500 or more, an exception in a model, a request that is never answered;
and, asked now and then, whether right requests are answered rightly still. Then Schemathesis asks the gateway what its
own description allows and forbids. Exit status 1 on anything wrong.

When the server itself ended, that is counted, and the rest is asked once `tritonkit serve` has started it again: what
then fails says nothing about the requests that fail.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.system import System
from fuzz import gateway
from fuzz.tensors import Models

CALLERS = 4
LOOK_EVERY = 250
BACK_WITHIN_S = 300.0
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
)


@dataclass(slots=True)
class Found:
    """How many requests were sent, and (number, request, what was wrong) for each that must not be.

    ends: how often the server was gone.
    """

    sent: int = 0
    ends: int = 0
    wrong: list[tuple[int, str, str]] = field(default_factory=list)


class Fuzzer:
    """Asks one gateway, and the server behind it if its address is given."""

    def __init__(
        self,
        url: str,
        grpc: str | None,
        seed: int,
        say: Callable[[str], None] = lambda line: None,
        callers: int = CALLERS,
    ) -> None:
        self.found = Found()
        self._url, self._grpc, self._seed, self._say, self._callers = url, grpc, seed, say, callers
        self._lock, self._mending = threading.Lock(), threading.Lock()

    def run(self, count: int) -> Found:
        """Send `count` requests, each made from the seed and its number alone, half of them to the server."""
        numbers = iter(range(count))
        callers = [threading.Thread(target=self._call, args=(numbers,)) for _ in range(self._callers)]
        for one in callers:
            one.start()
        for one in callers:
            one.join()
        return self.found

    def _call(self, numbers: Iterator[int]) -> None:
        models = Models(self._grpc) if self._grpc else None
        with httpx.Client(base_url=self._url) as client:
            while True:
                with self._lock:
                    number = next(numbers, None)
                if number is None:
                    break
                chance = random.Random(f"{self._seed}/{number}")
                words, wrong = models.ask(chance) if models and number % 2 else gateway.ask(client, chance)
                if wrong and self._was_gone(client):
                    wrong = ""
                    if models:  # gRPC waits long before it tries an address again that was dead
                        models.close()
                        models = Models(str(self._grpc))
                if not wrong and number % LOOK_EVERY == LOOK_EVERY - 1:
                    words, wrong = "a right request", is_wrong(client)
                    self._say(f"{number + 1} sent, {len(self.found.wrong)} wrong")
                self._note(number, words, wrong)
        if models:
            models.close()

    def _note(self, number: int, words: str, wrong: str) -> None:
        with self._lock:
            self.found.sent += 1
            if wrong:
                self.found.wrong.append((number, words, wrong))
                self._say(f"{number}: {words}\n    {wrong}")

    def _was_gone(self, client: httpx.Client) -> bool:
        """Whether the server was gone; it is back then."""
        if is_there(client):
            return False
        with self._mending:
            if not is_there(client):
                self.found.ends += 1
                self._say("the server has ended")
            end = time.monotonic() + BACK_WITHIN_S
            while not is_there(client):
                if time.monotonic() > end:
                    raise SystemExit(f"the server does not come back within {BACK_WITHIN_S:g} s")
                time.sleep(1)
        return True


def is_there(client: httpx.Client) -> bool:
    """Whether the server answers, as the gateway sees it."""
    return client.get("/health", timeout=30).status_code == 200


def is_wrong(client: httpx.Client) -> str:
    """What is wrong with the answers to right requests; "" if nothing."""
    seen = client.post("/v1/detections", files={"file": gateway.PICTURE}, timeout=gateway.LIMIT_S)
    if seen.status_code != 200 or '"cup"' not in seen.text:
        return f"{seen.status_code}, no cup is seen: {seen.text[:300]}"
    body = {"model": "llm", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    said = client.post("/v1/chat/completions", json=body, timeout=gateway.LIMIT_S)
    return "" if said.status_code == 200 else f"{said.status_code}, no answer to a chat: {said.text[:300]}"


def main() -> int:
    """Start, send, print what must not be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gateway-alone", action="store_true", help="send nothing to the server's own port")
    parser.add_argument("--described-s", type=int, default=120, help="how long Schemathesis asks")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, System(given.repository, Path(folder)) as system:
        began = time.monotonic()
        grpc = None if given.gateway_alone else system.grpc
        fuzzer = Fuzzer(system.gateway, grpc, given.seed, say=lambda line: print(line, flush=True))
        found = fuzzer.run(given.count)
        seconds = time.monotonic() - began
        print(
            f"{found.sent} requests in {seconds:.0f} s, seed {given.seed}: {len(found.wrong)} wrong; "
            f"the server ended {found.ends} times",
            flush=True,
        )
        if grpc:
            end_processes(grpc)
        limits = ("--phases", "coverage,fuzzing", "--max-time", str(given.described_s))
        # It keeps notes where it runs.
        described = subprocess.run(schemathesis(system.gateway, given.seed, *limits), cwd=folder)
    return 1 if found.wrong or found.ends or described.returncode else 0


def end_processes(address: str) -> None:
    """Send the shapes that end processes of Triton, and say what each did."""
    models = Models(address)
    for one in models.end_processes():
        print(
            f"{one.model}, {one.tensor} {list(one.shape)}: {one.words[:100]}; it answered again after "
            f"{one.back_after_s:.1f} s",
            flush=True,
        )
    models.close()


def schemathesis(url: str, seed: int, *limits: str) -> list[str]:
    """The command that asks a gateway by its own description."""
    command = [str(Path(sys.executable).with_name("st")), "run", f"{url}/openapi.json", "--no-color"]
    options = ["--seed", str(seed), "--request-timeout", str(int(gateway.LIMIT_S)), "--checks", ",".join(CHECKS)]
    return [*command, *options, *limits]


if __name__ == "__main__":
    sys.exit(main())
