"""Asks for the server's counts when the counted part of a load begins and when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from load.statistics import ModelCounts

PAUSE_S = 0.03
SETTLED_WITHIN_S = 2.0
Counts = Mapping[str, "ModelCounts"]


class Watch:
    """counts: asks the server; called in a thread of its own, so that nothing that sends has to wait."""

    def __init__(self, counts: Callable[[], Counts]) -> None:
        self._ask = counts
        self._before = settled(counts)
        self._problem: Exception | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, at: float) -> None:
        """Counts from that time on, by time.monotonic(), and not from when the watch was made."""
        self._thread = threading.Thread(target=self._wait_and_ask, args=(at,), daemon=True)
        self._thread.start()

    def _wait_and_ask(self, at: float) -> None:
        if self._stop.wait(max(0.0, at - time.monotonic())):
            return
        try:
            self._before = self._ask()
        except Exception as error:  # told by counts(), in the thread of whoever runs the load
            self._problem = error

    def counts(self) -> Counts:
        """What came to the counts."""
        if self._thread:
            self._thread.join()
        if self._problem:
            raise self._problem
        after = settled(self._ask)
        return {model: after[model] - before for model, before in self._before.items() if model in after}

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread:
            self._thread.join()


def settled(ask: Callable[[], Counts]) -> Counts:
    """The counts once they no longer change: a server counts a request a moment after it has answered it."""
    limit = time.monotonic() + SETTLED_WITHIN_S
    found = ask()
    while time.monotonic() < limit:
        time.sleep(PAUSE_S)
        earlier, found = found, ask()
        if found == earlier:
            break
    return found
