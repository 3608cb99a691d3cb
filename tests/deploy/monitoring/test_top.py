from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from typer.testing import CliRunner

from deploy.monitoring.samples import read_counts, rows_between
from tritonkit.__main__ import joined

BEFORE = """# TYPE nv_inference_request_success counter
nv_inference_request_success{model="a",version="1"} 10
nv_inference_request_success{model="a",version="2"} 5
nv_inference_request_failure{model="a",reason="BACKEND",version="1"} 1
nv_inference_request_failure{model="a",reason="CANCELED",version="1"} 3
nv_inference_count{model="a",version="1"} 20
nv_inference_exec_count{model="a",version="1"} 10
nv_inference_queue_duration_us{model="a",version="1"} 1000
nv_inference_compute_infer_duration_us{model="a",version="1"} 1000
nv_inference_pending_request_count{model="a",version="1"} 0
nv_inference_request_success{model="idle",version="1"} 7
nv_cpu_utilization 0.5
"""


def test_row_is_what_a_model_did_between_two_looks() -> None:
    after = (
        BEFORE.replace('version="1"} 10\n', 'version="1"} 14\n', 1)
        .replace('"2"} 5', '"2"} 11')
        .replace('BACKEND",version="1"} 1', 'BACKEND",version="1"} 2')
        .replace('CANCELED",version="1"} 3', 'CANCELED",version="1"} 30')
        .replace('count{model="a",version="1"} 20', 'count{model="a",version="1"} 50')
        .replace('exec_count{model="a",version="1"} 10', 'exec_count{model="a",version="1"} 20')
        .replace('queue_duration_us{model="a",version="1"} 1000', 'queue_duration_us{model="a",version="1"} 51000')
        .replace('pending_request_count{model="a",version="1"} 0', 'pending_request_count{model="a",version="1"} 4')
    )
    busy, idle = rows_between(read_counts(BEFORE), read_counts(after), 2.0)
    assert (busy.model, busy.requests_s, busy.failures_s, busy.batch) == ("a", 5.0, 0.5, 3.0)
    assert (busy.queue_ms, busy.compute_ms, busy.waiting) == (5.0, 0.0, 4)
    assert (idle.model, idle.requests_s, idle.batch, idle.queue_ms) == ("idle", 0.0, None, None)


def test_row_of_a_language_model_has_its_tokens_and_its_cache() -> None:
    before = """nv_inference_request_success{model="llm",version="1"} 1
nv_inference_pending_request_count{model="llm",version="1"} 1
tritonkit_llm_time_to_first_token_seconds_count{model="llm"} 1
tritonkit_llm_time_to_first_token_seconds_sum{model="llm"} 1
tritonkit_llm_completion_tokens_total{model="llm"} 100
tritonkit_llm_waiting_requests{model="llm"} 3
tritonkit_llm_kv_cache_usage{model="llm"} 0.25
"""
    after = before.replace('count{model="llm"} 1', 'count{model="llm"} 3').replace(
        'sum{model="llm"} 1', 'sum{model="llm"} 2'
    )
    (row,) = rows_between(read_counts(before), read_counts(after.replace(" 100", " 300")), 2.0)
    assert (row.first_token_ms, row.tokens_s, row.kv_share, row.waiting) == (500.0, 100.0, 0.25, 4)


def test_server_that_was_started_anew_does_not_count_backwards() -> None:
    after = BEFORE.replace('"2"} 5', '"2"} 0').replace('version="1"} 10\n', 'version="1"} 1\n', 1)
    assert {row.requests_s for row in rows_between(read_counts(BEFORE), read_counts(after), 1.0)} == {0.0}


def test_address_without_metrics_is_told_where_they_are() -> None:
    done = CliRunner().invoke(joined()[0], ["top", "--url", "http://127.0.0.1:9/metrics", "--times", "1"])
    assert done.exit_code == 1 and "http://host:8002/metrics" in done.stderr


@pytest.mark.server
def test_top_sees_the_requests_of_a_real_server(served: Any) -> None:
    from clients import connect

    stop = threading.Event()

    def ask() -> None:
        with connect(f"grpc://{served.grpc}") as client:
            while not stop.is_set():
                list(client.chat("Hello", max_tokens=1))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        words = ["top", "--url", served.metrics, "--times", "2", "--every", "1", "--json"]
        done = CliRunner().invoke(joined()[0], words)
    finally:
        stop.set()
        asking.join()
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert max(row["requests_s"] for row in rows if row["model"] == "llm") > 0
    assert max(row["tokens_s"] for row in rows if row["model"] == "llm") > 0
    assert all(row["tokens_s"] is None for row in rows if row["model"] == "yolo")
    assert {row["model"] for row in rows} >= {"assistant", "whisper_encoder", "yolo"}
