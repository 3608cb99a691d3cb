"""Triton's dynamic batcher: which waiting requests run together, and when.

In: requests as they come, and instances as they become free. Out: batches. It keeps no clock of its own: every call
says what time it is, and `wakes_at` says when it wants to be called again.

What it does was read in Triton's core (`dynamic_batch_scheduler.cc`, `rate_limiter.cc`, `instance_queue.cc`):
a batch is put together before an instance is free, two per instance at most; it leaves when a preferred size or the
largest is reached, or when its oldest request has waited for the delay. With no delay it leaves at once and grows
until an instance takes it; with one it stays as it left, and batches that were left behind are merged when taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tuning.settings import Serving

IDLE_WAIT_S = 0.5  # after so long without a call the batcher looks at its queue by itself


class Waiting(Protocol):
    """A request that waits. `rows`: of its batch dimension. `queued_s`: when it came. `priority`: 0 for the default."""

    rows: int
    queued_s: float
    priority: int


@dataclass(slots=True, eq=False)
class Batch:
    """Requests that run together; `taken` once an instance has them."""

    requests: list[Waiting]
    rows: int = 0
    is_left: bool = False
    is_taken: bool = False

    def add(self, requests: list[Waiting]) -> None:
        """Put more requests in."""
        self.requests += requests
        self.rows += sum(one.rows for one in requests)


class Batcher:
    """The queue of one model. `wakes_at` is the time of the next call of `look`, infinite if none is needed."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.wakes_at = float("inf")
        self._queues: list[deque[Waiting]] = [deque() for _ in range(max(1, serving.priority_levels))]
        self._queued_rows = 0
        self._ready: deque[Batch] = deque()
        self._batch = Batch([])
        self._is_full = False
        self._next_size = 0
        self._idle = serving.instances
        self._preferred = serving.preferred or (serving.limit,)
        self._looks_ahead = not serving.max_queue_size

    def __len__(self) -> int:
        """Requests that wait in the queue itself."""
        return sum(len(queue) for queue in self._queues)

    def put(self, request: Waiting, now_s: float) -> bool:
        """Take a request in. False if the queue is full: the request is refused."""
        if not self.serving.dynamic:
            batch = Batch([])
            batch.add([request])
            self._ready.append(batch)
            return True
        queue = self._queues[self._level(request.priority)]
        if self.serving.max_queue_size and len(queue) >= self.serving.max_queue_size:
            return False
        queue.append(request)
        self._queued_rows += request.rows
        if self._has_place() and (self._is_full or self._batch.is_taken or self._queued_rows >= self._next_size):
            self.look(now_s)
        return True

    def take(self, now_s: float) -> list[Waiting]:
        """The batch for an instance that is free; empty if there is none."""
        if not self._ready:
            return []
        batch = self._ready.popleft()
        batch.is_taken = True
        requests, rows = list(batch.requests), batch.rows
        if self.serving.dynamic:
            delay_s = self.serving.max_queue_delay_s
            while self._ready and delay_s > 0 and self.serving.limit > 1:
                front = self._ready[0]
                if now_s - front.requests[0].queued_s <= delay_s or rows + front.rows > self.serving.limit:
                    break
                self._ready.popleft()
                front.is_taken = True
                requests, rows = requests + front.requests, rows + front.rows
        self._idle -= 1
        if self.serving.dynamic:
            self.look(now_s)
        return requests

    def release(self, now_s: float) -> None:
        """An instance has become free."""
        self._idle += 1
        if not self._looks_ahead:
            self.look(now_s)

    def look(self, now_s: float) -> None:
        """Let batches leave that may; afterwards `wakes_at` holds."""
        self.wakes_at = float("inf")
        while True:
            if self._is_full or self._batch.is_taken:
                self._batch, self._is_full, self._next_size = Batch([]), False, 0
            if not len(self):
                self.wakes_at = now_s + IDLE_WAIT_S
                return
            if not self._has_place():
                return
            wait_s = self._form(now_s)
            if self._batch.requests and not self._batch.is_left:
                self._batch.is_left = True
                self._ready.append(self._batch)
            if wait_s > 0:
                self.wakes_at = now_s + wait_s
                return

    def _has_place(self) -> bool:
        """Whether another batch may leave: two for each instance, or none that no instance waits for."""
        if self._looks_ahead:
            return len(self._ready) < 2 * self.serving.instances
        return self._idle > len(self._ready)

    def _form(self, now_s: float) -> float:
        """Move what may leave from the queue into the batch; 0, or how long to wait for more."""
        serving, held = self.serving, self._batch.rows
        delay_s = serving.max_queue_delay_s
        largest = self._preferred[-1]
        rows = count = best_rows = best_count = 0
        must_go = False
        oldest_s = now_s
        for request in self._in_order():
            if held or count:
                if held + rows + request.rows > largest and not best_rows:
                    best_rows, best_count, self._is_full = rows, count, True
                if held + rows + request.rows > serving.limit:
                    must_go = True
                    break
            rows, count, oldest_s = rows + request.rows, count + 1, min(oldest_s, request.queued_s)
            if held + rows in self._preferred:
                best_rows, best_count = rows, count
        is_due = delay_s > 0 and now_s - oldest_s >= delay_s - 1e-9
        if best_rows and not is_due:
            self._is_full = self._is_full or delay_s == 0
            self._move(best_count)
            return 0.0
        if not count:
            return 0.0
        if must_go or held + rows >= largest:
            self._is_full = True
        elif not is_due and delay_s > 0:
            place = bisect_right(self._preferred, held + rows)
            self._next_size = self._preferred[place if place < len(self._preferred) else 0] - held
            if not held or held in self._preferred:
                return delay_s - (now_s - oldest_s)
        self._move(count)
        return 0.0

    def _in_order(self) -> Iterator[Waiting]:
        for queue in self._queues:
            yield from queue

    def _move(self, count: int) -> None:
        moved: list[Waiting] = []
        for queue in self._queues:
            while queue and len(moved) < count:
                moved.append(queue.popleft())
        self._queued_rows -= sum(one.rows for one in moved)
        self._batch.add(moved)

    def _level(self, priority: int) -> int:
        """The queue of a priority; what the model does not know is its default."""
        levels = self.serving.priority_levels
        if not 1 <= priority <= levels:
            priority = self.serving.default_priority or 1
        return priority - 1 if levels else 0
