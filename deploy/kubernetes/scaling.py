"""The objects that scale: an HPA, or KEDA where nothing should run while nobody asks. One of them, never both.

Both follow the time that requests wait before a *step*, and how many wait inside the language model's engine. An
ensemble's own queue is always empty, and utilisation of a GPU says nothing about waiting: a full batch and a single
request keep it equally busy.
"""

from typing import Any

from deploy.facts import Facts
from deploy.kubernetes.serving import labels
from deploy.monitoring import queries
from deploy.wishes import Wishes

HPA = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
KEDA = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}
DOWN_S = 600
QUEUE_PER_POD, WAITING_PER_POD = "tritonkit_queue_seconds_worst_step", "tritonkit_engine_waiting"


def autoscaler(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """The HPA; needs prometheus-adapter, with the rules of adapter_rules()."""
    targets = {QUEUE_PER_POD: f"{round(wishes.queue_s * 1000)}m"}
    if facts.engines:
        targets[WAITING_PER_POD] = str(wishes.at_once)
    metrics = [
        {
            "type": "Pods",
            "pods": {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": value}},
        }
        for metric, value in targets.items()
    ]
    behavior = {
        "scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]},
        "scaleDown": {
            "stabilizationWindowSeconds": DOWN_S,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}],
        },
    }
    limits = {"minReplicas": max(1, wishes.least), "maxReplicas": wishes.most}
    return scaler(HPA, facts.name, labels(facts), {**limits, "metrics": metrics, "behavior": behavior})


def adapter_rules() -> list[dict[str, Any]]:
    """What prometheus-adapter needs in its `rules.custom` to offer what is recorded as metrics of pods."""
    offered = {queries.QUEUE_WORST_S: QUEUE_PER_POD, queries.ENGINE_WAITING: WAITING_PER_POD}
    return [
        {
            "seriesQuery": f'{{__name__="{recorded}"}}',
            "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
            "name": {"matches": f"^{recorded}$", "as": metric},
            "metricsQuery": "max by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})",
        }
        for recorded, metric in offered.items()
    ]


def scaled_object(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """KEDA's object: from zero as soon as the gateway is asked, above one by the wait."""
    asked = f"sum(rate(tritonkit_gateway_requests_total[{queries.WINDOW}]))"
    here = f'{{namespace="{wishes.namespace}"}}'
    waits = f"max({queries.QUEUE_WORST_S}{here}) or vector(0)"
    waiting = f"max({queries.ENGINE_WAITING}{here}) or vector(0)"
    engine = [trigger(wishes, waiting, threshold=wishes.at_once, activation=wishes.at_once)] if facts.engines else []
    triggers = [
        trigger(wishes, waits, threshold=wishes.queue_s, activation=wishes.queue_s),
        *engine,
        # A rate that never asks for a second replica, but for the first at once.
        trigger(wishes, asked, threshold=1_000_000, activation=0, kind="AverageValue"),
    ]
    limits = {"minReplicaCount": wishes.least, "maxReplicaCount": wishes.most, "cooldownPeriod": DOWN_S}
    return scaler(KEDA, facts.name, labels(facts), {**limits, "triggers": triggers})


def trigger(wishes: Wishes, query: str, *, threshold: float, activation: float, kind: str = "Value") -> dict[str, Any]:
    """One query that KEDA asks."""
    return {
        "type": "prometheus",
        "metricType": kind,
        "metadata": {
            "serverAddress": wishes.prometheus,
            "query": query,
            "threshold": f"{threshold:g}",
            "activationThreshold": f"{activation:g}",
        },
    }


def scaler(kind: dict[str, str], name: str, labels: dict[str, str], how: dict[str, Any]) -> dict[str, Any]:
    """An object that scales the Deployment of its own name."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {**kind, "metadata": {"name": name, "labels": labels}, "spec": {"scaleTargetRef": target, **how}}
