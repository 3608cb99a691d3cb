"""What an OTLP exporter sends comes in; spans, and a trace as lines of text, go out. Pure.

Triton sends JSON, OpenTelemetry's SDKs send protobuf; both are read by OTLP's own message, unknown fields refused.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from deploy.errors import DeployError

JSON, PROTOBUF = "application/json", "application/x-protobuf"
IDS = ("traceId", "spanId", "parentSpanId")
SERVICE = "tritonserver"
WORK = "compute"  # Triton's name for the span of a model at work, below the one of its request


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of work: ids as hex, times in seconds since 1970, `events` when what happened in it."""

    trace: str
    id: str
    parent: str
    name: str
    service: str
    start_s: float
    end_s: float
    events: tuple[tuple[str, float], ...] = ()


def read_spans(body: bytes, content_type: str) -> list[Span]:
    """The spans of one export.

    Raises:
        DeployError: nothing that OTLP/HTTP knows.
    """
    from google.protobuf.json_format import ParseDict, ParseError
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == JSON:
            document = with_base64_ids(json.loads(body))
            if not isinstance(document, dict):
                raise DeployError(f"a JSON {type(document).__name__}; an object is needed")
            message = ParseDict(document, ExportTraceServiceRequest())
        elif kind == PROTOBUF:
            message = ExportTraceServiceRequest.FromString(body)
        else:
            raise DeployError(f"content-type {content_type!a}: {JSON} or {PROTOBUF} is needed")
    except (ValueError, TypeError, ParseError, DecodeError) as error:
        raise DeployError(f"no export of OTLP: {error}") from error
    return [span for resource in message.resource_spans for span in spans_of(resource)]


def trace_flags(url: str, *, rate: int = 1, level: str = "TIMESTAMPS") -> list[str]:
    """Flags that make tritonserver (23.08 on) send spans; one in `rate` requests, and all that a caller traces."""
    ours = ("mode=opentelemetry", f"rate={rate}", f"level={level}")
    theirs = (f"url={url}", f"resource=service.name={SERVICE}", "bsp_schedule_delay=500")
    return [f"--trace-config={one}" for one in (*ours, *(f"opentelemetry,{setting}" for setting in theirs))]


def with_base64_ids(value: Any) -> Any:
    """The same document with ids as protobuf's JSON has them: OTLP alone writes them in hex."""
    if isinstance(value, list):
        return [with_base64_ids(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(one)).decode() if name in IDS else with_base64_ids(one)
        for name, one in value.items()
    }


def spans_of(resource: Any) -> Iterator[Span]:
    """The spans of one program."""
    attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
    for scope in resource.scope_spans:
        for span in scope.spans:
            yield Span(
                trace=span.trace_id.hex(),
                id=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                name=span.name,
                service=attributes.get("service.name", ""),
                start_s=span.start_time_unix_nano / 1e9,
                end_s=span.end_time_unix_nano / 1e9,
                events=tuple((one.name, one.time_unix_nano / 1e9) for one in span.events),
            )


def trace_lines(spans: Sequence[Span]) -> list[str]:
    """One trace as a tree: when each part began, how long it took, how long a model's queue and its work took."""
    known = {span.id for span in spans}
    roots = [span for span in spans if span.parent not in known]
    began = min(span.start_s for span in spans)
    lines = [f"trace {spans[0].trace}, {1e3 * (max(span.end_s for span in spans) - began):.1f} ms"]
    for root in sorted(roots, key=lambda one: one.start_s):
        lines += branch(root, spans, began, 1)
    return lines


def branch(span: Span, spans: Sequence[Span], began: float, depth: int) -> list[str]:
    """A span and what is below it, in order of time; Triton's span of a model's work is told in its parent's line."""
    below = sorted((one for one in spans if one.parent == span.id), key=lambda one: one.start_s)
    work = next((one for one in below if one.name == WORK), None)
    times = [f"at {1e3 * (span.start_s - began):.1f}", f"took {1e3 * (span.end_s - span.start_s):.1f} ms"]
    queued = dict(span.events).get("QUEUE_START")
    if work is not None:
        waited = [f"waited {1e3 * max(0.0, work.start_s - queued):.1f} ms"] if queued else []
        times += [*waited, f"worked {1e3 * (work.end_s - work.start_s):.1f} ms"]
    line = f"{'  ' * depth}{span.name}  ({span.service})  {', '.join(times)}"
    return [line, *(more for one in below if one is not work for more in branch(one, spans, began, depth + 1))]
