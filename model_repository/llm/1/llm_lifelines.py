"""Requests that end with another one, their lifeline.

In: LIFELINE, the id of a request. Out: which ids to stop answering.

Inside an ensemble Triton (seen on 2.51) tells a cancellation only to steps that have not begun; the engine would go on
writing for a caller that left. It does tell this model when a request of its own is cancelled, and it hands the id of
an ensemble's request to each step. So a caller sends a second request straight to this model, which does nothing but
live: when that one is cancelled, closed or its connection breaks, the one it names is stopped.
"""

import time

from llm_replies import Replies

KEPT_S = 600.0  # how long a broken lifeline is remembered for a request that has not come to this step yet


class Lifelines:
    """The lifelines that are held now, by the id of the request that each belongs to, and those broken lately."""

    def __init__(self) -> None:
        self._held: dict[str, Replies] = {}
        self._broken: dict[str, float] = {}

    def hold(self, request_id: str, replies: Replies) -> None:
        if request_id in self._held:
            replies.fail_as_wrong_input(f"LIFELINE: {request_id} has one; one is enough; give each request its own id")
        else:
            self._held[request_id] = replies
            replies.send([])  # over HTTP Triton sees a closed connection only after the answer has begun

    def held(self) -> list[tuple[str, Replies]]:
        return list(self._held.items())

    def break_(self, request_id: str) -> None:
        """Remember that nobody waits for this request."""
        now = time.monotonic()
        while self._broken and now - next(iter(self._broken.values())) > KEPT_S:  # they lie in the order of time
            del self._broken[next(iter(self._broken))]
        self._broken.pop(request_id, None)
        self._broken[request_id] = now
        if request_id in self._held:
            self._held.pop(request_id).fail_as_cancelled()

    def is_broken(self, request_id: str) -> bool:
        return request_id in self._broken

    def release(self, request_id: str) -> None:
        """End the lifeline of a request that has ended."""
        if request_id in self._held:
            self._held.pop(request_id).end()

    def end(self) -> None:
        """End all of them, with the model."""
        for request_id in list(self._held):
            self._held.pop(request_id).fail_as_cancelled()
