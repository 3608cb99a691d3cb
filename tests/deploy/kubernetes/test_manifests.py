"""The objects against the schemas of three Kubernetes versions, and their numbers against the plan's."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from typer.testing import CliRunner

from deploy.facts import Facts
from deploy.kubernetes import serving
from deploy.kubernetes.kustomize import manifests
from deploy.wishes import Wishes
from tritonkit.__main__ import joined

OWN = ("deployment", "service", "disruption-budget", "network-policy", "hpa")
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
        checked.append(Path(path).stem)
    assert sorted(checked) == sorted(OWN)


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
    adapter = objects["hpa/prometheus-adapter-values.yaml"]["rules"]["custom"][0]
    assert hpa["metrics"][0]["pods"]["metric"]["name"] == adapter["name"]["as"]
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
    for overlay in ("base", "hpa", "keda"):
        one = objects[f"{overlay}/kustomization.yaml"]
        assert one["namespace"] == "here"
        for path in one["resources"] + [file for each in one.get("configMapGenerator", []) for file in each["files"]]:
            assert path == "../base" or f"{overlay}/{path}" in made


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
