"""Callers that ask a server again and again, each in a thread of its own; the fate of every request is counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Self

ENDED_WITHIN_S = 90.0


class Counts(Counter[Hashable]):
    """How often each thing was counted; threads may count at once, of which a plain Counter loses some."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def add(self, what: Hashable) -> None:
        """Count it once."""
        with self._lock:
            self[what] += 1


class Callers:
    """They ask from the beginning of a `with` block to its end.

    Args:
        connect: called in each thread with its number, from 0; gives a function that asks once and tells the fate.
        number: how many callers.
        pause_s: seconds from an answer to the next request.

    Attributes:
        counts: fate -> requests; "sent" is all of them.
    """

    def __init__(
        self, connect: Callable[[int], AbstractContextManager[Callable[[], str]]], number: int = 3, pause_s: float = 0.0
    ) -> None:
        self.counts = Counts()
        self._connect, self._pause_s = connect, pause_s
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(one,)) for one in range(number)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        end = time.monotonic() + ENDED_WITHIN_S
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        assert not any(thread.is_alive() for thread in self._threads), f"a request has no end: {self.counts}"

    def wait_for(self, fate: str, more: int, limit_s: float = 90.0) -> None:
        """Return when so many requests more than now have had this fate.

        Raises:
            AssertionError: they have not within the limit.
        """
        wanted, end = self.counts[fate] + more, time.monotonic() + limit_s
        while self.counts[fate] < wanted:
            assert time.monotonic() < end, f"not {more} more {fate} within {limit_s:g} s: {self.counts}"
            time.sleep(0.02)

    def _run(self, number: int) -> None:
        with self._connect(number) as ask:
            while not self._ended.is_set():
                self.counts.add("sent")
                self.counts.add(ask())
                self._ended.wait(self._pause_s)
