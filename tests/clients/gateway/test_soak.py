"""Mixed requests by number, and what every process holds before and after; an hour of it is `make soak`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from engine_process import server_of

from benchmarks.soak import Holding, holdings
from benchmarks.traffic import Caller

pytestmark = pytest.mark.server

ROUND = {"detect": 16, "chat": 6, "wrong request": 4, "leaving": 3, "shared memory": 1, "ask": 1}
MOST_ROUNDS = 5
MOST_BYTES = 5 * 2**20  # half of what the pictures of a round become, as tensors
Held = dict[str, Holding]


def test_nothing_grows_with_the_number_of_requests(served: Any, gateway: Any) -> None:
    """A leak grows with every round; caches and what the C library keeps stop growing."""
    caller = Caller(gateway.url, served.grpc)
    pids = (server_of(served), gateway.process.pid)
    fates: Counter[str] = Counter()

    def round_() -> Held:
        for kind, count in ROUND.items():
            fates.update(caller.ask(kind) for _ in range(count))
        return holdings(pids)

    rounds = [round_(), round_()]
    while (grown := growing(rounds[-2], rounds[-1])) and len(rounds) < MOST_ROUNDS:
        rounds.append(round_())
    caller.close()
    assert not grown, f"in each of {len(rounds) - 1} rounds something grew, in the last one {grown}"
    assert set(fates) == {"answered"}, fates


def growing(before: Held, after: Held) -> list[str]:
    """What became more, of memory in bytes, open files and threads; processes that came."""
    found = [name for name in after if name not in before]
    for name, held in before.items():
        for what, least in (("memory", MOST_BYTES), ("files", 1), ("threads", 1)):
            more = after[name][what] - held[what] if name in after else 0
            if more >= least:
                found.append(f"{name}: {what} by {more}")
    return found
