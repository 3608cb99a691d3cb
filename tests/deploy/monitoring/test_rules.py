"""The rules and the dashboard: valid for Prometheus itself, and about metrics that a real server has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from clients import connect
from clients.gateway.metrics import Metrics as GatewayMetrics
from deploy.facts import Facts
from deploy.monitoring import queries
from deploy.monitoring.dashboard import dashboard
from deploy.monitoring.fallbacks import Fallbacks, followed
from deploy.monitoring.rules import rule_groups
from deploy.wishes import Wishes
from worker.metrics import Metrics as WorkerMetrics

METRIC = re.compile(r"\b(?:nv_|tritonkit_)\w+")
RECORDED = re.compile(r"\btritonkit:[\w:]+")
# What a server without GPUs does not have; the names are those of Triton's documentation.
GPU_ONLY = {"nv_gpu_utilization", "nv_gpu_memory_used_bytes", "nv_gpu_memory_total_bytes"}
AT_HOME = Wishes(runbook="https://wiki.example/runbook")


@pytest.fixture(scope="module")
def groups(facts: Facts) -> list[dict[str, Any]]:
    return rule_groups(facts, Wishes())


def expressions(groups: list[dict[str, Any]], facts: Facts) -> list[str]:
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    return rules + [target["expr"] for panel in dashboard(facts)["panels"] for target in panel["targets"]]


def test_every_recorded_name_that_is_asked_for_is_recorded(groups: list[dict[str, Any]], facts: Facts) -> None:
    asked = {name for one in expressions(groups, facts) for name in RECORDED.findall(one)}
    assert asked <= set(queries.recorded(facts.queued, facts.entries, facts.gpus))


def test_every_alert_has_its_section_in_the_runbook(groups: list[dict[str, Any]], facts: Facts, checkout: Path) -> None:
    for rule in groups[1]["rules"]:
        page, _, section = rule["annotations"]["runbook_url"].partition("#")
        titles = re.findall(r"^## (.+)$", (checkout / page).read_text(), re.MULTILINE)
        assert section in {title.lower() for title in titles}
    (link,) = {one["annotations"]["runbook_url"].partition("#")[0] for one in rule_groups(facts, AT_HOME)[1]["rules"]}
    assert link == AT_HOME.runbook


def test_panels_do_not_overlap_and_have_ids_of_their_own(facts: Facts) -> None:
    panels = dashboard(facts)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    json.dumps(dashboard(facts), allow_nan=False)


@pytest.mark.server
def test_metrics_that_are_asked_for_are_there(groups: list[dict[str, Any]], facts: Facts, served: Any) -> None:
    with urllib.request.urlopen(served.metrics, timeout=5) as answer:
        scraped = answer.read().decode()
    own = GatewayMetrics().text().decode() + text_of(WorkerMetrics()) + text_of(Fallbacks())
    there = set(re.findall(r"^# TYPE (\w+) ", scraped + own, re.MULTILINE))
    asked = {name for one in expressions(groups, facts) for name in METRIC.findall(one)}
    families = {re.sub(r"_bucket$", "", name) for name in asked}
    assert families - there - GPU_ONLY == set()
    labels = set(re.findall(r"(\w+)=\"", scraped))
    assert {"model", "reason"} <= labels


def text_of(metrics: Any) -> str:
    from prometheus_client import generate_latest

    return generate_latest(metrics.registry).decode()


@pytest.mark.server
def test_rules_compute_something_of_what_a_real_server_has_said_twice(
    promtool: str, groups: list[dict[str, Any]], facts: Facts, served: Any, tmp_path: Path, checkout: Path
) -> None:
    picture = next((checkout / "samples").rglob("*.jpg"))
    before = scraped(served)
    with connect(f"grpc://{served.grpc}") as client:
        for _ in range(2):
            list(client.ask(image=picture, question="What is it?", max_tokens=3))
    deadline = time.monotonic() + 10
    counted = next(name for name in before if name.startswith("tritonkit_llm_completion_tokens_total"))
    while scraped(served)[counted] < before[counted] + 6:
        assert time.monotonic() < deadline, "the model's tokens do not arrive in the server's metrics"
    after = scraped(served)
    series = [
        {"series": with_labels(name), "values": f"{before.get(name, 0):f} {value:f}x12"}
        for name, value in after.items()
    ]
    series += [{"series": f"up{{{POD}}}", "values": "1x12"}]
    there = [
        {"expr": f"count({name}) > bool 0", "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for name in queries.recorded(facts.queued, facts.entries, facts.gpus)
    ]
    scenario = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "15s",
        "tests": [{"interval": "15s", "input_series": series, "promql_expr_test": there}],
    }
    run_promtool(promtool, tmp_path, groups, scenario)


def scraped(served: Any) -> dict[str, float]:
    with urllib.request.urlopen(served.metrics, timeout=5) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def with_labels(name: str) -> str:
    """What Prometheus adds when it scrapes a pod."""
    bare, _, labels = name.partition("{")
    return f"{bare}{{{POD},{labels}" if labels else f"{bare}{{{POD}}}"


def run_promtool(promtool: str, folder: Path, groups: list[dict[str, Any]], scenario: dict[str, Any]) -> None:
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    (folder / "test.yaml").write_text(yaml.safe_dump(scenario))
    for words in (["check", "rules", "rules.yaml"], ["test", "rules", "test.yaml"]):
        done = subprocess.run([promtool, *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_log_that_tells_of_a_full_pool_is_counted_while_it_grows(tmp_path: Path) -> None:
    log, fallbacks = tmp_path / "server.log", Fallbacks()
    log.write_text('W1 memory.cc:1] "failed to allocate CUDA memory, falling back to pinned system memory"\nhalf a ')
    for number, line in enumerate(followed(log, is_over=lambda: True)):
        fallbacks.read(line)
        if number == 0:
            with log.open("a") as more:
                more.write("line\nno pinned memory pool, falling back to non-pinned system memory\n")
    text = text_of(fallbacks)
    assert 'fallbacks_total{pool="cuda"} 1.0' in text and 'fallbacks_total{pool="pinned"} 1.0' in text


def test_log_that_was_printed_leaves_the_disk_and_none_of_it_is_lost(tmp_path: Path) -> None:
    log, lines = tmp_path / "server.log", [f"line {number} {'x' * 90}" for number in range(20_000)]
    half = len(lines) // 2
    log.write_text("".join(f"{one}\n" for one in lines[:half]))
    read = []
    for line in followed(log, is_over=lambda: len(read) >= len(lines), give_back_bytes=2**16):
        read.append(line)
        if len(read) == half:
            with log.open("a") as server:
                server.writelines(f"{one}\n" for one in lines[half:])
    assert read == lines
    assert log.stat().st_size > 2_000_000 and log.stat().st_blocks * 512 < 200_000
    left = list(followed(log, is_over=lambda: True))
    assert lines[-len(left) + 1 :] == left[1:], "who follows it anew begins behind the hole, perhaps within a line"
    assert len(left) < half


@pytest.mark.server
def test_words_of_a_full_pool_are_those_of_the_real_server(served: Any) -> None:
    fallbacks = Fallbacks()
    for line in served.log_file.read_text(errors="replace").splitlines():
        fallbacks.read(line)
    assert 'fallbacks_total{pool="pinned"} 1.0' in text_of(fallbacks), "this machine has no pinned pool at all"


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    return found


def test_promtool_accepts_the_rules_and_they_compute_what_they_say(
    promtool: str, groups: list[dict[str, Any]], tmp_path: Path
) -> None:
    run_promtool(promtool, tmp_path, groups, SCENARIO)


# Ten requests a second that wait 0.3 s each before the encoder; one in four of yolo's fails; nobody has the entry.
POD = 'namespace="n",pod="p",job="triton"'


def labels(model: str = "") -> dict[str, str]:
    return {"namespace": "n", "pod": "p", "job": "triton", **({"model": model} if model else {})}


SCENARIO = {
    "rule_files": ["rules.yaml"],
    "evaluation_interval": "15s",
    "tests": [
        {
            "interval": "15s",
            "input_series": [
                {"series": f"up{{{POD}}}", "values": "1x80"},
                {"series": f'nv_inference_request_success{{model="whisper_encoder",{POD}}}', "values": "0+150x80"},
                {
                    "series": f'nv_inference_queue_duration_us{{model="whisper_encoder",{POD}}}',
                    "values": "0+45000000x80",
                },
                {"series": f'nv_inference_queue_duration_us{{model="llm",{POD}}}', "values": "0+99000000x80"},
                {"series": f'nv_inference_request_success{{model="llm",{POD}}}', "values": "0+1x80"},
                {"series": f'nv_inference_request_success{{model="assistant_image",{POD}}}', "values": "0+75x80"},
                {"series": f'tritonkit_llm_kv_cache_usage{{model="llm",{POD}}}', "values": "0.99x80"},
                {"series": f'tritonkit_llm_waiting_requests{{model="llm",{POD}}}', "values": "3x80"},
                {
                    "series": f'tritonkit_llm_time_to_first_token_seconds_bucket{{model="llm",le="5",{POD}}}',
                    "values": "0+10x80",
                },
                {
                    "series": f'tritonkit_llm_time_to_first_token_seconds_bucket{{model="llm",le="2.5",{POD}}}',
                    "values": "0x80",
                },
                {
                    "series": f'tritonkit_llm_time_to_first_token_seconds_bucket{{model="llm",le="+Inf",{POD}}}',
                    "values": "0+10x80",
                },
                {"series": f'tritonkit_server_fallbacks_total{{pool="cuda",{POD}}}', "values": "0x8 1x72"},
                {"series": f'nv_inference_count{{model="yolo",{POD}}}', "values": "0+400x80"},
                {"series": f'nv_inference_exec_count{{model="yolo",{POD}}}', "values": "0+100x80"},
                {"series": f'nv_inference_request_success{{model="yolo",{POD}}}', "values": "0+75x80"},
                {
                    "series": f'nv_inference_request_failure{{model="yolo",reason="BACKEND",{POD}}}',
                    "values": "0+25x80",
                },
                {
                    "series": f'nv_inference_request_failure{{model="yolo",reason="CANCELED",{POD}}}',
                    "values": "0+500x80",
                },
            ],
            "promql_expr_test": [
                {
                    "expr": "tritonkit:queue_seconds:worst_step",
                    "eval_time": "10m",
                    "exp_samples": [
                        {"labels": 'tritonkit:queue_seconds:worst_step{namespace="n",pod="p"}', "value": 0.3}
                    ],
                },
                {
                    "expr": 'tritonkit:batch_size:mean{model="yolo"}',
                    "eval_time": "10m",
                    "exp_samples": [
                        {
                            "labels": 'tritonkit:batch_size:mean{namespace="n",pod="p",model="yolo"}',
                            "value": 4,
                        }
                    ],
                },
                {
                    # One server of one GPU, five requests a second: 0.2 GPU seconds each.
                    "expr": "round(tritonkit:gpu_hours:per_thousand_requests * 3600)",
                    "eval_time": "10m",
                    "exp_samples": [{"labels": "{}", "value": 200}],
                },
                {
                    "expr": 'tritonkit:failures:share{model="yolo"}',
                    "eval_time": "10m",
                    "exp_samples": [{"labels": 'tritonkit:failures:share{namespace="n",model="yolo"}', "value": 0.25}],
                },
            ],
            "alert_rule_test": [
                {
                    "eval_time": "19m",
                    "alertname": "TritonFirstTokenSlow",
                    "exp_alerts": [
                        {
                            "exp_labels": {"severity": "ticket", "namespace": "n", "pod": "p", "model": "llm"},
                            "exp_annotations": {
                                "summary": "One in twenty waits 4.875s for the first token of llm",
                                "runbook_url": "docs/runbook.md#tritonfirsttokenslow",
                            },
                        }
                    ],
                },
                {
                    "eval_time": "19m",
                    "alertname": "TritonKvCacheFull",
                    "exp_alerts": [
                        {
                            "exp_labels": {"severity": "ticket", **labels("llm")},
                            "exp_annotations": {
                                "summary": "The KV cache of llm is full, and requests wait for it",
                                "runbook_url": "docs/runbook.md#tritonkvcachefull",
                            },
                        }
                    ],
                },
                {"eval_time": "1m", "alertname": "TritonCudaPoolFull", "exp_alerts": []},
                {
                    "eval_time": "19m",
                    "alertname": "TritonCudaPoolFull",
                    "exp_alerts": [
                        {
                            "exp_labels": {"severity": "ticket", "pool": "cuda", **labels()},
                            "exp_annotations": {
                                "summary": "Tensors between steps go through the host: the CUDA pool was full",
                                "runbook_url": "docs/runbook.md#tritoncudapoolfull",
                            },
                        }
                    ],
                },
                {
                    "eval_time": "19m",
                    "alertname": "TritonQueueLong",
                    "exp_alerts": [
                        {
                            "exp_labels": {
                                "severity": "ticket",
                                "namespace": "n",
                                "pod": "p",
                                "model": "whisper_encoder",
                            },
                            "exp_annotations": {
                                "summary": "Requests wait 300ms before whisper_encoder",
                                "runbook_url": "docs/runbook.md#tritonqueuelong",
                            },
                        }
                    ],
                },
                {
                    "eval_time": "19m",
                    "alertname": "TritonRequestsFail",
                    "exp_alerts": [
                        {
                            "exp_labels": {"severity": "page", "namespace": "n", "model": "yolo"},
                            "exp_annotations": {
                                "summary": "yolo fails 25% of its requests",
                                "runbook_url": "docs/runbook.md#tritonrequestsfail",
                            },
                        }
                    ],
                },
                {
                    "eval_time": "19m",
                    "alertname": "TritonEntryMissing",
                    "exp_alerts": [
                        {
                            "exp_labels": {"severity": "page", "model": "assistant"},
                            "exp_annotations": {
                                "summary": "No server has loaded assistant",
                                "runbook_url": "docs/runbook.md#tritonentrymissing",
                            },
                        }
                    ],
                },
                {"eval_time": "19m", "alertname": "TritonRejects", "exp_alerts": []},
                {"eval_time": "19m", "alertname": "TritonDown", "exp_alerts": []},
            ],
        }
    ],
}
