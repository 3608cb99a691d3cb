"""Waiting for models to be loaded."""

import time
from collections.abc import Iterable

from clients.endpoint import Endpoint
from clients.errors import Unreachable
from clients.steps import Pause, Steps
from clients.transports import problems

PAUSE_S = 0.1


def wait_for_ready(endpoint: Endpoint, models: Iterable[str], limit_s: float) -> Steps[None]:
    """Returns when the server has loaded all the models.

    Each is asked for by name: a server calls itself ready even if a model was rejected.

    Raises:
        Unreachable: nobody answers within limit_s.
        NotReady: the server answers, but a model isn't loaded within limit_s.
    """
    end = time.monotonic() + limit_s
    for model in models:
        while not (yield from _is_ready(model, end)):
            if time.monotonic() >= end:
                raise problems.not_ready(model, endpoint, f"waited {limit_s:g} s")
            yield Pause(PAUSE_S)


def _is_ready(model: str, end: float) -> Steps[bool]:
    try:
        return (yield lambda transport: transport.is_ready(model, problems.PROBE_TIMEOUT_S))
    except Unreachable:
        if time.monotonic() >= end:
            raise
        return False
