"""The rules and the dashboard: valid for Prometheus itself, and about metrics that a real server has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from clients.gateway.metrics import Metrics as GatewayMetrics
from deploy.facts import Facts
from deploy.monitoring import queries
from deploy.monitoring.dashboard import dashboard
from deploy.monitoring.rules import rule_groups
from deploy.wishes import Wishes
from worker.metrics import Metrics as WorkerMetrics

METRIC = re.compile(r"\b(?:nv_|tritonkit_)\w+")
RECORDED = re.compile(r"\btritonkit:[\w:]+")
# What a server without GPUs does not have; the names are those of Triton's documentation.
GPU_ONLY = {"nv_gpu_utilization", "nv_gpu_memory_used_bytes", "nv_gpu_memory_total_bytes"}


@pytest.fixture(scope="module")
def groups(facts: Facts) -> list[dict[str, Any]]:
    return rule_groups(facts, Wishes())


def expressions(groups: list[dict[str, Any]], facts: Facts) -> list[str]:
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    return rules + [target["expr"] for panel in dashboard(facts)["panels"] for target in panel["targets"]]


def test_every_recorded_name_that_is_asked_for_is_recorded(groups: list[dict[str, Any]], facts: Facts) -> None:
    asked = {name for one in expressions(groups, facts) for name in RECORDED.findall(one)}
    assert asked <= set(queries.recorded(facts.queued, facts.entries))


def test_every_alert_has_its_section_in_the_runbook(groups: list[dict[str, Any]], checkout: Path) -> None:
    for rule in groups[1]["rules"]:
        page, _, section = rule["annotations"]["runbook_url"].partition("#")
        titles = re.findall(r"^## (.+)$", (checkout / page).read_text(), re.MULTILINE)
        assert section in {title.lower() for title in titles}


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
    own = GatewayMetrics().text().decode() + worker_text()
    there = set(re.findall(r"^# TYPE (\w+) ", scraped + own, re.MULTILINE))
    asked = {name for one in expressions(groups, facts) for name in METRIC.findall(one)}
    families = {re.sub(r"_bucket$", "", name) for name in asked}
    assert families - there - GPU_ONLY == set()
    labels = set(re.findall(r"(\w+)=\"", scraped))
    assert {"model", "reason"} <= labels


def worker_text() -> str:
    from prometheus_client import generate_latest

    return generate_latest(WorkerMetrics().registry).decode()


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    return found


def test_promtool_accepts_the_rules_and_they_compute_what_they_say(
    promtool: str, groups: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(SCENARIO))
    for words in (["check", "rules", "rules.yaml"], ["test", "rules", "test.yaml"]):
        done = subprocess.run([promtool, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


# Ten requests a second that wait 0.3 s each before the encoder; one in four of yolo's fails; nobody has the entry.
POD = 'namespace="n",pod="p",job="triton"'
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
                    "expr": 'tritonkit:failures:share{model="yolo"}',
                    "eval_time": "10m",
                    "exp_samples": [{"labels": 'tritonkit:failures:share{namespace="n",model="yolo"}', "value": 0.25}],
                },
            ],
            "alert_rule_test": [
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
