"""Asks for the server's counts when the counted part of a load begins and when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from load.errors import LoadError

if TYPE_CHECKING:
    from load.statistics import ModelCounts

PAUSE_S = 0.03
SETTLED_WITHIN_S = 2.0
Counts = Mapping[str, "ModelCounts"]


class Watch:
    """counts: asks the server; called in a thread of its own, so that nothing that sends has to wait.

    A server that does not tell, or no longer, does not end the load: `problem` says so.
    """

    def __init__(self, counts: Callable[[], Counts]) -> None:
        self._ask = counts
        self.problem = ""
        self._before = self._settled()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, at: float) -> None:
        """Counts from that time on, by time.monotonic(), and not from when the watch was made."""
        self._thread = threading.Thread(target=self._wait_and_ask, args=(at,), daemon=True)
        self._thread.start()

    def _wait_and_ask(self, at: float) -> None:
        if not self._stop.wait(max(0.0, at - time.monotonic())):
            self._before = self._told()

    def counts(self) -> Counts:
        """What came to the counts; empty if the server did not tell."""
        if self._thread:
            self._thread.join()
        after = self._settled()
        return {model: after[model] - before for model, before in self._before.items() if model in after}

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _settled(self) -> Counts:
        """The counts once they no longer change: a server counts a request a moment after it has answered it."""
        limit = time.monotonic() + SETTLED_WITHIN_S
        found = self._told()
        while found and time.monotonic() < limit:
            time.sleep(PAUSE_S)
            earlier, found = found, self._told()
            if found == earlier:
                break
        return found

    def _told(self) -> Counts:
        try:
            return self._ask()
        except LoadError as error:
            self.problem = str(error)
            return {}
