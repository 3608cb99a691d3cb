"""Three times as many requests as the gateway can answer, on the real server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from engine_process import server_of
from gateway_process import Gateway

from benchmarks.overload import overload, resident

pytestmark = [pytest.mark.server, pytest.mark.slow]

CALLERS, SECONDS = 6, 8
GROWTH_BYTES = 64 * 2**20


@pytest.mark.timing
def test_what_is_too_much_is_refused_fast_and_the_rest_answered_rightly(served: Any, start_gateway: Any) -> None:
    with start_gateway("--most-in-flight", str(CALLERS)) as gateway:
        found: Any = asyncio.run(measured(gateway, server_of(served)))
    under, normal = found["overload"], found["normal"]
    assert under["sent"] == under["answered"] + under["refused"], found
    assert under["wrong"] == under["failed"] == under["lost"] == 0, found
    assert under["refused"] > under["answered"], "it was not overloaded"
    # Never more in flight than when the capacity was measured: an answer takes as long as then, and what refusals cost.
    # (As before or as after, whichever is longer: something else may take the processor in the middle.)
    assert under["answer_p95"] < 4 * max(normal["answer_p95"], found["normal_again"]["answer_p95"]), found
    assert under["refusal_p50"] < normal["answer_p50"], found
    assert found["memory_after"] - found["memory_before"] < GROWTH_BYTES, found
    assert found["afterwards"]["answered"] == 1 and found["afterwards"]["after_s"] < 1, found


async def measured(gateway: Gateway, server: int) -> dict[str, object]:
    def memory() -> int:
        return resident(server) + resident(gateway.process.pid)

    return await overload(gateway.url, times=3, seconds=SECONDS, callers=CALLERS, capacity_s=2, memory=memory)
