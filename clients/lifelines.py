"""Requests to an ensemble that are stopped when their caller goes away.

Triton (seen on 2.51) tells a cancellation only to those steps of an ensemble that have not begun. A streaming model
that takes LIFELINE can be told beside it: a second request, sent to that model alone and naming the first by its id,
is cancelled with the first, and the model then stops both. See docs/clients.md.
"""

import uuid
from dataclasses import replace

from clients.arrays import text
from clients.errors import EndpointError
from clients.signature import Signature
from clients.steps import Steps
from clients.tensors import Request

INPUT = "LIFELINE"


class Lifelines:
    """Which model holds the lifelines of each ensemble; asked of the server once."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}

    def attached(self, request: Request, timeout_s: float) -> Steps[Request]:
        """The request with an id and a lifeline, where one can be had; otherwise as it is."""
        if request.model not in self._holders:
            self._holders[request.model] = yield from _holder(request.model, timeout_s)
        holder = self._holders[request.model]
        return replace(request, id=uuid.uuid4().hex, lifeline=holder) if holder else request


def lifeline_of(request: Request) -> Request:
    """The second request: it lives as long as the first is wanted."""
    return Request(model=request.lifeline, tensors=(text(INPUT, request.id),), id=f"{request.id}-lifeline")


def _holder(model: str, timeout_s: float) -> Steps[str]:
    """The last step of the ensemble that takes LIFELINE; "" if none does, or the model is no ensemble."""
    try:
        steps = (yield from _signature(model, timeout_s)).steps
    except EndpointError:  # a transport to plain functions: there it is the generator that is closed
        return ""
    for step in reversed(steps):
        if INPUT in (yield from _signature(step, timeout_s)).inputs:
            return step
    return ""


def _signature(model: str, timeout_s: float) -> Steps[Signature]:
    return (yield lambda transport: transport.signature(model, timeout_s))
