"""The objects against the schemas of three Kubernetes versions, and their numbers against the plan's."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml
from typer.testing import CliRunner

from deploy.facts import Facts
from deploy.kubernetes import serving
from deploy.kubernetes.kustomize import manifests
from deploy.wishes import Wishes
from tritonkit.__main__ import joined

EACH = ("deployment", "service", "disruption-budget", "network-policy")
OWN = [
    *(f"{folder}/{one}" for folder in ("base", "gateway", "worker") for one in EACH),
    "hpa/hpa",
    "gateway/hpa",
]
FOREIGN = ("keda.sh/", "monitoring.coreos.com/", "kustomize.config.k8s.io/")


def container(objects: dict[str, Any]) -> dict[str, Any]:
    return objects["base/deployment.yaml"]["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("version", ["1.30.0", "1.34.0", "1.37.0"])
def test_every_object_of_kubernetes_itself_has_the_form_of_its_schema(objects: dict[str, Any], version: str) -> None:
    checked = []
    for path, one in objects.items():
        if "apiVersion" not in one or one["apiVersion"].startswith(FOREIGN):
            continue
        kubernetes_validate.validate(one, version, strict=True)
        checked.append(path.removesuffix(".yaml"))
    assert sorted(checked) == sorted(OWN)


@pytest.fixture(scope="module")
def foreign() -> dict[str, Any]:
    """Models made of the CRDs of KEDA 2.16 and of the Prometheus operator 0.80, by kind."""
    from cloudcoil.models.keda.v1alpha1 import ScaledObject
    from cloudcoil.models.prometheus_operator.v1 import PrometheusRule, ServiceMonitor

    return {one.__name__: one for one in (ScaledObject, ServiceMonitor, PrometheusRule)}


def fits(model: Any, given: dict[str, Any]) -> bool:
    """Whether nothing is of a wrong kind, and nothing was dropped because the CRD does not know it."""
    kept = model.model_validate(given).model_dump(by_alias=True, exclude_none=True, exclude_unset=True, mode="json")
    return bool(kept == given)


def test_objects_of_keda_and_the_prometheus_operator_have_the_form_of_their_crds(
    objects: dict[str, Any], foreign: dict[str, Any]
) -> None:
    checked = []
    for path, one in objects.items():
        if one.get("kind") in foreign:
            assert fits(foreign[one["kind"]], one), path
            checked.append(one["kind"])
    assert {kind: checked.count(kind) for kind in foreign} == {
        "ScaledObject": 2,
        "ServiceMonitor": 4,
        "PrometheusRule": 1,
    }


def test_crds_notice_a_misspelt_field(objects: dict[str, Any], foreign: dict[str, Any]) -> None:
    broken = json.loads(json.dumps(objects["keda/keda.yaml"]))
    broken["spec"]["maxReplicas"] = 3
    assert not fits(foreign["ScaledObject"], broken)


def test_worker_is_scaled_by_the_lag_of_the_group_that_it_joins(objects: dict[str, Any]) -> None:
    (trigger,) = objects["worker/keda.yaml"]["spec"]["triggers"]
    command = objects["worker/deployment.yaml"]["spec"]["template"]["spec"]["containers"][0]["command"]
    said = dict(zip(command[3:], command[4:], strict=False))
    about = trigger["metadata"]
    assert (trigger["type"], objects["worker/keda.yaml"]["spec"]["minReplicaCount"]) == ("kafka", 0)
    assert about["consumerGroup"] == said["--group"]
    assert (about["topic"], about["bootstrapServers"]) == (said["--inbound"], said["--brokers"])


@pytest.mark.parametrize("folder", ["gateway", "worker"])
def test_what_asks_the_server_may_and_takes_its_command(objects: dict[str, Any], folder: str) -> None:
    template = objects[f"{folder}/deployment.yaml"]["spec"]["template"]
    (allowed,) = objects["base/network-policy.yaml"]["spec"]["ingress"][0]["from"]
    assert allowed["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    main = template["spec"]["containers"][0]
    service = objects["base/service.yaml"]["metadata"]["name"]
    assert {"name": "TRITONKIT_URL", "value": f"grpc://{service}:8001"} in main["env"]
    package, name = main["command"][2:4]
    options = {
        option
        for parameter in typer.main.get_group(joined()[0]).commands[name].params
        for option in getattr(parameter, "opts", ())
    }
    assert package in ("clients", "worker")
    assert {word for word in main["command"] if word.startswith("--")} <= options


def test_programs_beside_the_server_run_with_the_packages_of_their_image(tmp_path: Path, checkout: Path) -> None:
    stage = (checkout / "docker" / "Dockerfile").read_text().split(" AS worker\n")[1]
    for folder in re.findall(r"COPY (\w+) \./", stage):
        (tmp_path / folder).symlink_to(checkout / folder)
    for words in (["deploy", "log-metrics", "--help"], ["worker", "worker", "--help"]):
        command = [sys.executable, "-P", "-m", *words]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_server_sends_traces_where_it_was_told_and_may_reach_it(facts: Facts, objects: dict[str, Any]) -> None:
    assert objects["base/network-policy.yaml"]["spec"]["egress"] == []
    told = Wishes(traces_url="http://otel.monitoring:4318/v1/traces")
    assert f"--trace-config=opentelemetry,url={told.traces_url}" in serving.container(facts, told)["args"]
    assert {"port": 4318} in serving.network_policy(facts, told)["spec"]["egress"][0]["ports"]


def test_log_that_is_counted_is_the_one_that_the_server_writes(objects: dict[str, Any]) -> None:
    server, log = objects["base/deployment.yaml"]["spec"]["template"]["spec"]["containers"]
    assert f"--log-file={log['command'][4]}" in server["args"]
    (mount,) = log["volumeMounts"]
    assert mount in server["volumeMounts"], "what reads it frees what it has read: not read-only"


def test_schema_notices_a_misspelt_field(objects: dict[str, Any]) -> None:
    broken = json.loads(json.dumps(objects["base/deployment.yaml"]))
    broken["spec"]["template"]["spec"]["containers"][0]["startupProb"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.34.0", strict=True)


def test_numbers_are_those_of_the_plan(
    objects: dict[str, Any], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    told = CliRunner().invoke(joined()[0], ["plan", "assistant", "--gpu", "L4", "--json"])
    memory = json.loads(told.stdout)["memory"]
    settings = {one["name"]: str(one["value"]) for one in memory["settings"]}
    server = container(objects)
    assert f"--cuda-memory-pool-byte-size={settings['--cuda-memory-pool-byte-size']}" in server["args"]
    assert f"--pinned-memory-pool-byte-size={settings['--pinned-memory-pool-byte-size']}" in server["args"]
    (shm,) = [
        one for one in objects["base/deployment.yaml"]["spec"]["template"]["spec"]["volumes"] if one["name"] == "shm"
    ]
    assert mib(shm["emptyDir"]["sizeLimit"]) == int(settings["--shm-size"].removesuffix("m"))
    assert {"name": "shm", "mountPath": "/dev/shm"} in server["volumeMounts"]
    assert server["resources"]["limits"]["nvidia.com/gpu"] == str(len(memory["accounts"]))
    assert mib(server["resources"]["requests"]["memory"]) > mib(shm["emptyDir"]["sizeLimit"]), "shm counts as memory"


def mib(quantity: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", quantity).groups()  # type: ignore[union-attr]
    return int(number) * {"Mi": 1, "Gi": 1024}[unit]


def test_start_is_given_the_time_that_seventy_billion_weights_take(facts: Facts, wishes: Wishes) -> None:
    big = replace(facts, weight_bytes=140 * 10**9)
    probe = serving.container(big, wishes)["startupProbe"]
    allowed = probe["periodSeconds"] * probe["failureThreshold"]
    assert allowed >= 140e9 / wishes.read_bytes_s + wishes.engine_start_s
    assert allowed < 2 * (140e9 / wishes.read_bytes_s + wishes.engine_start_s), "a start that hangs is noticed"


def test_liveness_waits_for_a_startup_probe_of_the_entry_model(objects: dict[str, Any]) -> None:
    server = container(objects)
    assert server["startupProbe"]["httpGet"]["path"] == "/v2/models/assistant/ready"
    assert server["readinessProbe"]["httpGet"]["path"] == "/v2/models/assistant/ready"
    assert server["livenessProbe"]["httpGet"]["path"] == "/v2/health/live"
    assert "initialDelaySeconds" not in server["livenessProbe"]


def test_pod_has_longer_to_end_than_its_requests(objects: dict[str, Any], wishes: Wishes) -> None:
    spec = objects["base/deployment.yaml"]["spec"]["template"]["spec"]
    (drain,) = [int(one.partition("=")[2]) for one in container(objects)["args"] if one.startswith("--exit-timeout")]
    (sleep,) = [int(one) for one in container(objects)["lifecycle"]["preStop"]["exec"]["command"][1:]]
    assert drain == wishes.drain_s
    assert spec["terminationGracePeriodSeconds"] > drain + sleep


def test_scalers_follow_the_wait_before_steps_and_count_as_wished(objects: dict[str, Any], facts: Facts) -> None:
    hpa, keda = objects["hpa/hpa.yaml"]["spec"], objects["keda/keda.yaml"]["spec"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (keda["minReplicaCount"], keda["maxReplicaCount"]) == (2, 7)
    assert hpa["metrics"][0]["pods"]["target"]["averageValue"] == "80m"
    rules = objects["hpa/prometheus-adapter-values.yaml"]["rules"]["custom"]
    assert [one["pods"]["metric"]["name"] for one in hpa["metrics"]] == [one["name"]["as"] for one in rules]
    assert hpa["metrics"][1]["pods"]["target"]["averageValue"] == keda["triggers"][1]["metadata"]["threshold"] == "8"
    adapter = rules[0]
    rules = {
        rule.get("record"): rule["expr"]
        for group in objects["base/rules.yaml"]["spec"]["groups"]
        for rule in group["rules"]
    }
    worst = rules["tritonkit:queue_seconds:worst_step"]
    assert "tritonkit:queue_seconds:worst_step" in adapter["seriesQuery"]
    assert "tritonkit:queue_seconds:worst_step" in keda["triggers"][0]["metadata"]["query"]
    assert all(step in worst for step in facts.queued) and "assistant" not in worst and "llm" not in worst


def test_hpa_never_goes_to_zero_and_keda_may(facts: Facts) -> None:
    made = manifests(facts, Wishes(least=0))
    assert "minReplicas: 1" in made["hpa/hpa.yaml"] and "minReplicaCount: 0" in made["keda/keda.yaml"]


def test_kustomizations_name_files_that_are_there(facts: Facts, wishes: Wishes, objects: dict[str, Any]) -> None:
    made = manifests(facts, wishes)
    for overlay in ("base", "hpa", "keda", "gateway", "worker"):
        one = objects[f"{overlay}/kustomization.yaml"]
        assert one["namespace"] == "here"
        for path in one["resources"] + [file for each in one.get("configMapGenerator", []) for file in each["files"]]:
            assert path == "../base" or f"{overlay}/{path}" in made


@pytest.fixture(scope="module")
def kubectl() -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("kubectl is not installed")
    told = subprocess.run([found, "version", "--client", "--output=json"], capture_output=True, text=True)
    if "kustomizeVersion" not in json.loads(told.stdout):
        pytest.skip("this kubectl has a Kustomize from before 2022")
    return found


@pytest.mark.parametrize(("overlay", "objects_in_it"), [("hpa", 9), ("keda", 9), ("gateway", 6), ("worker", 6)])
def test_kubectl_builds_every_overlay(
    kubectl: str, facts: Facts, wishes: Wishes, tmp_path: Path, overlay: str, objects_in_it: int
) -> None:
    for path, content in manifests(facts, wishes).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content)
    done = subprocess.run([kubectl, "kustomize", str(tmp_path / overlay)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    assert len(built) == objects_in_it
    assert {one["metadata"]["namespace"] for one in built} == {"here"}
    for one in built:
        if not one["apiVersion"].startswith(FOREIGN):
            kubernetes_validate.validate(one, "1.34.0", strict=True)


def test_all_objects_select_the_same_pods(objects: dict[str, Any]) -> None:
    pods = objects["base/deployment.yaml"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        objects["base/deployment.yaml"]["spec"]["selector"]["matchLabels"],
        objects["base/service.yaml"]["spec"]["selector"],
        objects["base/disruption-budget.yaml"]["spec"]["selector"]["matchLabels"],
        objects["base/network-policy.yaml"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(one == pods for one in selectors)
    monitor = objects["base/service-monitor.yaml"]["spec"]
    assert monitor["selector"]["matchLabels"] == objects["base/service.yaml"]["metadata"]["labels"]
    ports = {one["name"] for one in objects["base/service.yaml"]["spec"]["ports"]}
    assert {one["port"] for one in monitor["endpoints"]} <= ports


def test_command_writes_what_it_names_and_refuses_a_gpu_that_is_too_small(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    done = CliRunner().invoke(joined()[0], ["kubernetes", "detect", "--gpu", "L4", "--out", str(tmp_path / "k")])
    assert done.exit_code == 0 and (tmp_path / "k/base/deployment.yaml").exists()
    assert {Path(line) for line in done.stdout.split()} == {
        file for file in (tmp_path / "k").rglob("*") if file.is_file()
    }
    small = CliRunner().invoke(joined()[0], ["kubernetes", "assistant", "--gpu", "1GiB", "--out", str(tmp_path / "n")])
    assert small.exit_code == 1 and "GPU 0" in small.stderr and not (tmp_path / "n").exists()


def test_deadline_of_a_rollout_is_longer_than_a_start(objects: dict[str, Any]) -> None:
    probe = container(objects)["startupProbe"]
    deadline = objects["base/deployment.yaml"]["spec"]["progressDeadlineSeconds"]
    assert deadline > math.ceil(probe["periodSeconds"] * probe["failureThreshold"])


def test_container_starts_what_the_image_has_with_flags_that_it_takes(
    objects: dict[str, Any], facts: Facts, wishes: Wishes
) -> None:
    from starter.__main__ import parser

    server = container(objects)
    assert server["command"][:3] == ["python3", "-m", "starter"]
    given = parser().parse_args([*server["command"][3:], *server["args"]])
    assert (given.command, given.config_name) == ("run", "gpu")
    assert given.load_timeout_s == serving.start_s(facts, wishes)
    assert given.server[:2] == ["--", "tritonserver"]
    assert "--exit-timeout-secs=45" in given.server
