"""`python -m fuzz.inputs GATEWAY GRPC`: odd requests to a running gateway and the server behind it.

    tritonkit serve &  tritonkit gateway &
    python -m fuzz.inputs http://127.0.0.1:9000 127.0.0.1:8001 --count 10000

In: their addresses. Out: what must not have happened: a status of 500 or more, an exception in a model, a request that
is never answered; and, asked now and then, whether right requests are answered rightly still. Exit status 1 on any.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from fuzz import gateway
from fuzz.tensors import Models

CALLERS = 4
LOOK_EVERY = 250


@dataclass(slots=True)
class Found:
    """How many requests were sent, and (number, request, what was wrong) for each that must not be."""

    sent: int = 0
    wrong: list[tuple[int, str, str]] = field(default_factory=list)


def fuzz(url: str, grpc: str, *, count: int, seed: int, say: Callable[[str], None] = lambda line: None) -> Found:
    """Send `count` requests, each made from the seed and its number alone, half of them to the gateway."""
    found = Found()
    numbers = iter(range(count))
    lock = threading.Lock()

    def call() -> None:
        models = Models(grpc)
        with httpx.Client(base_url=url) as client:
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    break
                chance = random.Random(f"{seed}/{number}")
                words, wrong = gateway.ask(client, chance) if number % 2 else models.ask(chance)
                if not wrong and number % LOOK_EVERY == LOOK_EVERY - 1:
                    words, wrong = "a right request", is_wrong(client)
                    say(f"{number + 1} sent, {len(found.wrong)} wrong")
                with lock:
                    found.sent += 1
                    if wrong:
                        found.wrong.append((number, words, wrong))
                        say(f"{number}: {words}\n    {wrong}")
        models.close()

    callers = [threading.Thread(target=call) for _ in range(CALLERS)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    return found


def is_wrong(client: httpx.Client) -> str:
    """What is wrong with the answers to right requests; "" if nothing."""
    seen = client.post("/v1/detections", files={"file": gateway.PICTURE}, timeout=gateway.LIMIT_S)
    if seen.status_code != 200 or '"cup"' not in seen.text:
        return f"{seen.status_code}, no cup is seen: {seen.text[:300]}"
    body = {"model": "llm", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    said = client.post("/v1/chat/completions", json=body, timeout=gateway.LIMIT_S)
    return "" if said.status_code == 200 else f"{said.status_code}, no answer to a chat: {said.text[:300]}"


def main() -> int:
    """Send, print what must not be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gateway", help="http://host:port")
    parser.add_argument("grpc", help="host:port of the server itself")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()
    found = fuzz(
        given.gateway, given.grpc, count=given.count, seed=given.seed, say=lambda line: print(line, flush=True)
    )
    print(f"{found.sent} requests in {time.monotonic() - began:.0f} s, seed {given.seed}: {len(found.wrong)} wrong")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
