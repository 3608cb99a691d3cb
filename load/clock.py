"""An event loop that wakes up when it should.

asyncio's own rounds every wait up to the next millisecond, which would be most of the latency of a small model.
"""

from __future__ import annotations

import asyncio
import select
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
FINE_S = 0.02  # longer waits are cut to whole milliseconds and end in a fine one


class FineSelector(selectors.EpollSelector):
    """epoll with waits in microseconds: select() takes them, and can wait for an epoll descriptor."""

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and 0 < timeout < FINE_S:
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def run_finely(work: Coroutine[Any, Any, Result]) -> Result:
    """What the coroutine returns, run on such a loop."""
    found: list[Result] = []

    async def work_and_keep() -> None:
        found.append(await work)  # not the task's own result: asyncio writes that out as text at its end

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(FineSelector())) as runner:
        runner.run(work_and_keep())
    return found[0]
