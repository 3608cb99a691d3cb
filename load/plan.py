"""What is to be sent, to whom, and when: plain values, and what a target must be able to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from load.arrivals import Arrivals, Closed
from load.errors import LoadError

if TYPE_CHECKING:
    from load.statistics import ModelCounts

Outputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One complete answer.

    Attributes:
        raw: the bytes as they came; equal bytes are equal answers. Empty if parts may be cut in many ways.
        read: the outputs by name, as arrays, text or JSON values; called only when the bytes differ.
        first_s: when the first part came, by time.monotonic(); 0 if there are no parts.
        token_s: when each part of the text came.
        tokens: how many tokens the model says it wrote.
    """

    raw: bytes
    read: Callable[[], Outputs]
    first_s: float = 0.0
    token_s: tuple[float, ...] = ()
    tokens: int = 0


Send = Callable[[int], Awaitable[Answer]]  # sends the item at that place; raises NoAnswer


class Connectable(Protocol):
    """What a process needs to send; goes to worker processes by pickle."""

    def connect(self) -> AbstractAsyncContextManager[Send]:
        """A connection that is ready, inside an event loop."""


class Target(Protocol):
    """Who is asked, and what.

    triton.TritonTarget asks any model of a Triton server, posts.PostTarget any HTTP endpoint; anything with these
    members can be put under load.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """What the items are called."""

    def prepared(self) -> AbstractContextManager[Connectable]:
        """Everything that is done once, for as long as the load lasts."""

    def counts(self) -> Mapping[str, ModelCounts]:
        """The server's own statistics up to now, by model in the order of the flow; empty if it has none."""

    def cheapest(self) -> Target | None:
        """The same bytes to a call that answers at once, to find the load generator's own ceiling; None if none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """One load.

    Attributes:
        target: who is asked, and what; items are drawn at random, equally often.
        arrivals: Poisson, Fixed, Replay (open loop) or Closed.
        seconds: how long requests are sent and counted.
        warmup_s: how long they are sent before that without being counted.
        timeout_s: after this a request is lost.
        workers: processes that send; more only help where there are cores for them.
        compare: whether each answer must be what the same item gave when it was asked alone.
        seed: of the arrivals and of the order of items.
    """

    target: Target
    arrivals: Arrivals
    seconds: float = 10.0
    warmup_s: float = 1.0
    timeout_s: float = 60.0
    workers: int = 1
    compare: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.target.names:
            raise LoadError("load", "no items", "at least one input is needed")
        if self.seconds <= 0 or self.warmup_s < 0 or self.timeout_s <= 0 or self.workers < 1:
            found = f"{self.seconds:g} s, warm-up {self.warmup_s:g} s, timeout {self.timeout_s:g} s, "
            raise LoadError("load", f"{found}{self.workers} workers", "positive numbers are needed")
        if isinstance(self.arrivals, Closed) and self.arrivals.callers < self.workers:
            raise LoadError("load", f"{self.arrivals.callers} callers", f"{self.workers} workers need one each")
