"""How far a batch is: rows, rate, time left, and whether the server was kept busy."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 30.0


class Progress:
    """Counts; asked for one line of text whenever someone wants to look.

    Args:
        total: rows of the input.
        done, bad: rows that an earlier run has finished, and how many of them went wrong.
        limit: how many requests may be in flight.
        clock: seconds, never going back.
    """

    def __init__(
        self, total: int, done: int, bad: int, limit: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total, self.done, self.bad, self.limit = total, done, bad, limit
        self.in_flight = 0
        self.server_queue: int | None = None
        self._clock = clock
        self._began = self._changed = clock()
        self._earlier = done
        self._has_begun = False
        self._full_s = self._busy_s = 0.0
        self._ticks: deque[tuple[float, int]] = deque([(self._began, done)])

    def begin(self) -> None:
        """A request goes out; the clock starts with the first."""
        if not self._has_begun:
            self._has_begun = True
            self._began = self._changed = self._clock()
            self._ticks[0] = (self._began, self.done)
        self._pass_time()
        self.in_flight += 1

    def end(self, *, is_bad: bool = False) -> None:
        """A row is finished, well or not."""
        self._pass_time()
        self.in_flight -= 1
        self.finish(is_bad=is_bad)

    def finish(self, *, is_bad: bool = False) -> None:
        """A row is finished without a request of ours in flight."""
        self.done += 1
        self.bad += is_bad
        now = self._clock()
        self._ticks.append((now, self.done))
        while len(self._ticks) > 2 and self._ticks[0][0] < now - WINDOW_S:
            self._ticks.popleft()

    @property
    def rate(self) -> float:
        """Rows per second of the last half minute."""
        (began, before), now = self._ticks[0], self._clock()
        return (self.done - before) / (now - began) if now > began else 0.0

    @property
    def full_share(self) -> float | None:
        """The share of time in which as many requests were in flight as allowed, while there were rows to send.

        None if there never were more rows than that, or others count what is in flight.
        """
        return self._full_s / self._busy_s if self._busy_s else None

    def line(self) -> str:
        """The state in words."""
        left = self.total - self.done
        left_s = f"{duration(left / self.rate)} left" if self.rate > 0 and left else ""
        parts = [
            f"{self.done:,} of {self.total:,} rows",
            f"{self.bad:,} bad" if self.bad else "",
            f"{self.rate:.1f} rows/s",
            left_s,
            f"in flight {self.in_flight} of {self.limit}",
            "" if self.server_queue is None else f"waiting in the server {self.server_queue}",
        ]
        return ", ".join(part for part in parts if part)

    def summary(self) -> str:
        """What this run did, in words."""
        seconds = self._clock() - self._began
        rows = self.done - self._earlier
        earlier = f" ({self._earlier:,} were done before)" if self._earlier else ""
        rate = f"{rows / seconds:.1f} rows/s" if seconds else ""
        share = self.full_share
        full = "" if share is None else f"; the limit of {self.limit} in flight was reached {share:.0%} of the time"
        return f"{rows:,} rows in {duration(seconds)}{earlier}, {rate}, {self.bad:,} bad{full}"

    def _pass_time(self) -> None:
        """The last rows cannot fill the limit: only time in which there was more to send counts."""
        now = self._clock()
        if self.total - self.done > self.limit:
            self._busy_s += now - self._changed
            self._full_s += now - self._changed if self.in_flight >= self.limit else 0.0
        self._changed = now


def duration(seconds: float) -> str:
    """Seconds as people say them: 42 s, 3 min 05 s, 2 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
