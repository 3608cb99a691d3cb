"""What both clients are made of: one server, its transport, and what is known of its models."""

import math
from typing import Generic, TypeVar

from clients.chains import Chains
from clients.defaults import TIMEOUT_S
from clients.errors import EndpointError
from clients.lifelines import Lifelines
from clients.sharing import Sharing
from clients.signature import Signature
from clients.transports import AsyncTransport, Transport, problems

Way = TypeVar("Way", Transport, AsyncTransport)


class BaseClient(Generic[Way]):
    """Made by connect() and connect_async().

    Attributes:
        timeout_s: the longest wait for an answer, or for the next event of a streamed one. Each call may have its own.
    """

    def __init__(
        self, transport: Way, *, timeout_s: float = TIMEOUT_S, sharing: Sharing | None = None, chains: int = 1
    ) -> None:
        self.timeout_s = check_timeout(timeout_s)
        self._transport: Way = transport
        self._sharing = sharing
        self._chains = Chains(chains)
        self._lifelines = Lifelines()
        self._signatures: dict[str, Signature] = {}
        self._is_closed = False

    def _limit_s(self, timeout_s: float | None) -> float:
        return self.timeout_s if timeout_s is None else check_timeout(timeout_s)

    def _check_open(self) -> None:
        if self._is_closed:
            raise problems.closed(self._transport.endpoint)


def check_timeout(timeout_s: float) -> float:
    """The timeout, or EndpointError if it is none."""
    if not isinstance(timeout_s, int | float) or not 0 < timeout_s < math.inf:
        raise EndpointError("timeout_s", f"{timeout_s!r}", "a positive number of seconds is needed")
    return timeout_s
