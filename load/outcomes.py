"""What became of each request: exactly one outcome, and when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """RIGHT is the only good one."""

    RIGHT = "right"
    WRONG = "wrong"  # answered, but not with what the same input gave when it was asked alone
    REFUSED = "refused"  # the server said at once that it can't now: a full queue, too many in flight
    FAILED = "failed"  # any other error, or nobody there
    LOST = "lost"  # no complete answer within the time limit


class NoAnswer(Exception):
    """Raised by whatever sends a request when no answer came of it."""

    def __init__(self, outcome: Outcome, words: str) -> None:
        super().__init__(outcome, words)
        self.outcome = outcome
        self.words = words


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One request; all times in seconds from the end of the warm-up, those in it negative.

    Attributes:
        item: which of the items was sent, by its place.
        intended_s: when it should have been sent. In a closed loop, when it was.
        sent_s, ended_s: when it was sent; when its answer was complete, or the attempt over.
        first_s: when the first part of a streamed answer came; 0 if the answer came at once or not at all.
        token_s: when each part of the text came, in a streamed answer.
        tokens: how many tokens the model says it wrote.
        words: what was wrong, in the server's words or ours.
    """

    item: int
    intended_s: float
    sent_s: float
    ended_s: float
    outcome: Outcome
    words: str = ""
    first_s: float = 0.0
    token_s: tuple[float, ...] = ()
    tokens: int = 0

    @property
    def latency_s(self) -> float:
        """From when it should have been sent: a load that fell behind does not hide how long its callers waited."""
        return self.ended_s - self.intended_s
