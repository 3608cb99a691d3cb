"""All files of a deployment as text, by path: a Kustomize base, and an overlay for each way to scale it.

base/    serves, and is watched
hpa/     base and a HorizontalPodAutoscaler
keda/    base and a ScaledObject, down to no pod at all
gateway/ OpenAI's API in front of it, by itself
worker/  a worker on a Kafka topic, scaled by its lag down to none; only where a topic is wished
"""

import json
from typing import Any

from deploy.facts import Facts
from deploy.kubernetes import asking, scaling, serving
from deploy.monitoring.dashboard import dashboard
from deploy.monitoring.rules import rule_groups
from deploy.wishes import Wishes

HEAD = (
    "# Made by tritonkit for the pipeline {pipeline} on {gpus} x {gpu}, Triton {release}. Make it again, do not edit.\n"
)
PARALLEL = """# A model over the GPUs of several machines (tensor or pipeline parallelism across nodes) is one engine in
# several pods that start and end together: that takes a LeaderWorkerSet, not this Deployment.
"""


def manifests(facts: Facts, wishes: Wishes) -> dict[str, str]:
    """Text by path."""
    base = {
        "deployment.yaml": serving.deployment(facts, wishes),
        "service.yaml": serving.service(facts),
        "disruption-budget.yaml": serving.disruption_budget(serving.labels(facts), facts.name),
        "network-policy.yaml": serving.network_policy(facts, wishes),
        "service-monitor.yaml": service_monitor(serving.labels(facts), facts.name, "triton", ["metrics"]),
        "log-monitor.yaml": service_monitor(serving.labels(facts), f"{facts.name}-log", "triton-log", ["log-metrics"]),
        "rules.yaml": prometheus_rule(facts, wishes),
    }
    files = {f"base/{path}": text(facts, one) for path, one in base.items()}
    files["base/deployment.yaml"] += PARALLEL * (facts.gpus > 1)
    files["base/dashboard.json"] = json.dumps(dashboard(facts), indent=1) + "\n"
    # Grafana's sidecar finds dashboards in config maps with this label.
    config_map = {
        "name": f"{facts.name}-dashboard",
        "files": ["dashboard.json"],
        "options": {"labels": {"grafana_dashboard": "1"}, "disableNameSuffixHash": True},
    }
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": wishes.namespace,
        "resources": list(base),
        "configMapGenerator": [config_map],
    }
    files["base/kustomization.yaml"] = text(facts, kustomization)
    scalers = {"hpa": scaling.autoscaler(facts, wishes), "keda": scaling.scaled_object(facts, wishes)}
    for scaler, one in scalers.items():
        resources = ["../base", f"{scaler}.yaml"]
        overlay = {key: value for key, value in kustomization.items() if key != "configMapGenerator"}
        files[f"{scaler}/kustomization.yaml"] = text(facts, {**overlay, "resources": resources})
        files[f"{scaler}/{scaler}.yaml"] = text(facts, one)
    files["hpa/prometheus-adapter-values.yaml"] = text(facts, {"rules": {"custom": scaling.adapter_rules()}})
    return files | askers(facts, wishes)


def askers(facts: Facts, wishes: Wishes) -> dict[str, str]:
    """The folders of the gateway and the worker."""
    gateway = asking.gateway(facts)
    programs: dict[str, tuple[asking.Program, dict[str, Any]]] = {
        "gateway": (gateway, {"hpa.yaml": asking.processor_scaler(gateway, wishes)})
    }
    if wishes.inbound:
        worker = asking.worker(facts, wishes)
        programs["worker"] = (worker, {"keda.yaml": asking.lag_scaler(worker, facts, wishes)})
    files = {}
    for folder, (program, scaler) in programs.items():
        objects = {
            "deployment.yaml": asking.deployment(program, wishes),
            "service.yaml": asking.service(program),
            "network-policy.yaml": asking.network_policy(program, is_open=folder == "gateway"),
            "disruption-budget.yaml": serving.disruption_budget(asking.labels(program), program.name),
            "service-monitor.yaml": service_monitor(asking.labels(program), program.name, folder, ["http"]),
            **scaler,
        }
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": wishes.namespace,
            "resources": list(objects),
        }
        for path, one in {**objects, "kustomization.yaml": kustomization}.items():
            files[f"{folder}/{path}"] = text(facts, one)
    return files


def service_monitor(labels: dict[str, str], name: str, job: str, ports: list[str]) -> dict[str, Any]:
    """Tells the Prometheus operator to scrape some ports of a service, under a job's name that the rules expect."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "endpoints": [
                {"port": port, "interval": "15s", "relabelings": [{"targetLabel": "job", "replacement": job}]}
                for port in ports
            ],
        },
    }


def prometheus_rule(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """The rules as the operator takes them."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": facts.name, "labels": serving.labels(facts)},
        "spec": {"groups": rule_groups(facts, wishes)},
    }


def text(facts: Facts, value: Any) -> str:
    """One YAML document that says where it comes from."""
    import yaml

    class Plain(yaml.SafeDumper):
        """Without anchors: what is said twice is written twice."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    head = HEAD.format(pipeline=facts.pipeline, gpus=facts.gpus, gpu=facts.gpu_name, release=facts.release)
    return head + yaml.dump(value, Dumper=Plain, sort_keys=False, width=120, allow_unicode=True)
