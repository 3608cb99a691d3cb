"""Traces from a caller through the gateway and the ensemble's steps, by OTLP to our own collector."""

from __future__ import annotations

import gzip
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from clients import connect, traced
from clients.tracing import trace_headers
from deploy.errors import DeployError
from deploy.monitoring.collector import Collector
from deploy.monitoring.spans import JSON, Span, read_spans, trace_lines

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def span(**given: Any) -> dict[str, Any]:
    times = {"startTimeUnixNano": "1000000000", "endTimeUnixNano": "1500000000"}
    return {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "a", **times, **given}


def exported(*spans: dict[str, Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()


def test_ids_of_otlp_json_are_read_as_hex() -> None:
    (one,) = read_spans(exported(span()), JSON)
    assert (one.trace, one.id, one.parent) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "")
    assert (one.start_s, one.end_s) == (1.0, 1.5)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"[", JSON),
        (b"[]", JSON),
        (exported(span(nam="a")), JSON),
        (exported(span(spanId="xy")), JSON),
        (b"", "text/x"),
    ],
)
def test_what_is_no_otlp_is_refused(body: bytes, kind: str) -> None:
    with pytest.raises(DeployError):
        read_spans(body, kind)


@pytest.mark.parametrize("kept", ["", "00-0af7-b7ad-01", PARENT.upper(), f"{PARENT}\r\nx: y"])
def test_trace_context_that_has_not_its_form_is_dropped(kept: str) -> None:
    with traced({"traceparent": kept, "tracestate": "a=b"}):
        assert trace_headers() == {}


def test_trace_context_is_that_of_the_block_alone() -> None:
    with traced({"traceparent": PARENT, "tracestate": "a=b", "cookie": "c"}):
        assert trace_headers() == {"traceparent": PARENT, "tracestate": "a=b"}
    assert trace_headers() == {}


def test_exporter_is_told_what_it_did_wrong() -> None:
    with Collector() as collector:
        for path, body, status in (("/v1/logs", b"{}", 404), ("/v1/traces", b"[", 400)):
            request = urllib.request.Request(collector.url.replace("/v1/traces", path), body, {"content-type": JSON})
            with pytest.raises(urllib.error.HTTPError) as told:
                urllib.request.urlopen(request, timeout=5)
            assert told.value.code == status
            told.value.close()
        headers = {"content-type": JSON, "content-encoding": "gzip"}
        urllib.request.urlopen(
            urllib.request.Request(collector.url, gzip.compress(exported(span())), headers), timeout=5
        ).close()
        assert [one.name for one in next(collector.traces(0.01))] == ["a"]


@pytest.fixture(scope="module")
def trace(served: Any, collector: Collector, checkout: Path) -> list[Span]:
    """A program with OpenTelemetry's SDK has asked the assistant, over gRPC; all spans of that one trace."""
    provider = TracerProvider(resource=Resource.create({"service.name": "program"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=collector.url)))
    setting(served, "TIMESTAMPS")
    try:
        with (
            connect(f"grpc://{served.grpc}") as client,
            provider.get_tracer("test").start_as_current_span("question") as asked,
        ):
            list(client.ask(image=next((checkout / "samples").rglob("*.jpg")), question="What is it?", max_tokens=2))
            wanted = f"{asked.get_span_context().trace_id:032x}"
    finally:
        setting(served, "OFF")
        provider.shutdown()
    return next(one for one in collector.traces(1.5) if one[0].trace == wanted)


def setting(served: Any, level: str) -> None:
    body = json.dumps({"trace_level": [level]}).encode()
    urllib.request.urlopen(f"http://{served.http}/v2/trace/setting", body, timeout=5).close()


def paths(trace: list[Span]) -> list[list[str]]:
    """The names from each span up to the root."""
    by_id = {one.id: one for one in trace}
    found = []
    for one in trace:
        found.append([one.name])
        while one.parent in by_id:
            one = by_id[one.parent]
            found[-1].append(one.name)
    return found


@pytest.mark.server
def test_one_trace_goes_from_the_program_through_the_ensemble_to_every_step(trace: list[Span]) -> None:
    for step in ("yolo_preprocess", "yolo", "yolo_postprocess", "prompt", "llm"):
        assert [step, "assistant_image", "InferRequest", "question"] in paths(trace)
    assert {one.service for one in trace} == {"program", "tritonserver"}


@pytest.mark.server
def test_gateway_passes_on_the_trace_of_its_caller(served: Any, collector: Collector) -> None:
    from starlette.testclient import TestClient

    from clients.gateway.app import make_app
    from clients.gateway.settings import Settings

    trace_id = "a" * 32
    headers = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01", "host": "127.0.0.1"}
    body = {"model": "llm", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    setting(served, "TIMESTAMPS")
    try:
        with TestClient(make_app(Settings(server=f"grpc://{served.grpc}"))) as caller:
            answer = caller.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
    finally:
        setting(served, "OFF")
    found = next(one for one in collector.traces(1.5) if one[0].trace == trace_id)
    assert ["llm", "InferRequest"] in paths(found)
    assert {one.parent for one in found if one.name == "InferRequest"} == {"b7ad6b7169203331"}


@pytest.mark.server
def test_tree_says_how_long_each_step_waited_and_worked(trace: list[Span]) -> None:
    lines = trace_lines(trace)
    assert lines[1].startswith("  question  (program)") and lines[2].startswith("    InferRequest  (tritonserver)")
    (yolo,) = [line for line in lines if line.strip().startswith("yolo  ")]
    assert "waited" in yolo and "worked" in yolo
    assert not any("compute" in line for line in lines)
