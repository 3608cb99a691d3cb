"""The objects that scale: an HPA, or KEDA where nothing should run while nobody asks. One of them, never both.

Both follow the time that requests wait before a *step*. An ensemble's own queue is always empty, and utilisation of a
GPU says nothing about waiting: a full batch and a single request keep it equally busy.
"""

from typing import Any

from deploy.facts import Facts
from deploy.kubernetes.serving import labels, name
from deploy.monitoring import queries
from deploy.wishes import Wishes

DOWN_S = 600
PER_POD = "tritonkit_queue_seconds_worst_step"


def autoscaler(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """The HPA; needs prometheus-adapter, with the rule of adapter_rule()."""
    target = {"type": "AverageValue", "averageValue": f"{round(wishes.queue_s * 1000)}m"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name(facts), "labels": labels(facts)},
        "spec": {
            "scaleTargetRef": reference(facts),
            "minReplicas": max(1, wishes.least),
            "maxReplicas": wishes.most,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": PER_POD}, "target": target}}],
            "behavior": {
                "scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]},
                "scaleDown": {
                    "stabilizationWindowSeconds": DOWN_S,
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}],
                },
            },
        },
    }


def adapter_rule() -> dict[str, Any]:
    """What prometheus-adapter needs in its `rules.custom` to offer the recorded wait as a metric of pods."""
    return {
        "seriesQuery": f'{{__name__="{queries.QUEUE_WORST_S}"}}',
        "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
        "name": {"matches": f"^{queries.QUEUE_WORST_S}$", "as": PER_POD},
        "metricsQuery": "max by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})",
    }


def scaled_object(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """KEDA's object: from zero as soon as the gateway is asked, above one by the wait."""
    asked = f"sum(rate(tritonkit_gateway_requests_total[{queries.WINDOW}]))"
    waits = f'max({queries.QUEUE_WORST_S}{{namespace="{wishes.namespace}"}}) or vector(0)'
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name(facts), "labels": labels(facts)},
        "spec": {
            "scaleTargetRef": reference(facts),
            "minReplicaCount": wishes.least,
            "maxReplicaCount": wishes.most,
            "cooldownPeriod": DOWN_S,
            "triggers": [
                trigger(wishes, waits, threshold=wishes.queue_s, activation=wishes.queue_s),
                # A rate that never asks for a second replica, but for the first at once.
                trigger(wishes, asked, threshold=1_000_000, activation=0),
            ],
        },
    }


def trigger(wishes: Wishes, query: str, *, threshold: float, activation: float) -> dict[str, Any]:
    """One query that KEDA asks."""
    return {
        "type": "prometheus",
        "metricType": "AverageValue" if threshold >= 1 else "Value",
        "metadata": {
            "serverAddress": wishes.prometheus,
            "query": query,
            "threshold": f"{threshold:g}",
            "activationThreshold": f"{activation:g}",
        },
    }


def reference(facts: Facts) -> dict[str, str]:
    """What is scaled."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name(facts)}
