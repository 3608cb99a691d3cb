"""The trace context of W3C: the headers with which a server's spans become part of the caller's trace.

with traced({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}):
    client.detect("photo.jpg")

A program that uses OpenTelemetry's own SDK needs none of this: its current span is taken.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

# What a header may hold; anything else is dropped, as the standard says, for it comes from strangers.
FORMS = {
    "traceparent": re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"),
    "tracestate": re.compile(r"[\x20-\x7e]{1,512}"),
}
TRACE_HEADERS = tuple(FORMS)
_given: ContextVar[Mapping[str, str] | None] = ContextVar("tritonkit_trace", default=None)


@contextmanager
def traced(headers: Mapping[str, str]) -> Iterator[None]:
    """Calls inside the block, and in tasks that begin there, carry `traceparent` and `tracestate` of these headers."""
    token = _given.set(well_formed(headers))
    try:
        yield
    finally:
        _given.reset(token)


def trace_headers() -> dict[str, str]:
    """The headers for a call made now; none outside a trace."""
    given = _given.get()
    return dict(given) if given else _of_current_span()


def well_formed(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that say where a trace stands; none without a usable `traceparent`."""
    kept = {name: headers[name] for name, form in FORMS.items() if form.fullmatch(headers.get(name) or "")}
    return kept if "traceparent" in kept else {}


def _of_current_span() -> dict[str, str]:
    if "opentelemetry.sdk.trace" not in sys.modules:  # whoever has spans has imported it
        return {}
    from opentelemetry import propagate

    headers: dict[str, str] = {}
    propagate.inject(headers)
    return well_formed(headers)
