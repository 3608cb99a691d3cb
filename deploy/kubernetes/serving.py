"""The objects that serve: Deployment, Service, PodDisruptionBudget, NetworkPolicy."""

from math import ceil
from typing import Any
from urllib.parse import urlsplit

from deploy.facts import GIB, Facts
from deploy.monitoring.spans import trace_flags
from deploy.wishes import Wishes
from starter.keys import INFERENCE_KEY

PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002}
PROBE_S = 10
GONE_S = 10  # until every balancer has heard that a pod ends; it still takes requests meanwhile
MARGIN_S = 15
# The user of our images. Volumes that are written to are its group's.
RIGHTS = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "runAsGroup": 1000,
    "fsGroup": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
# Of each container.
CONFINED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
LABEL = "app.kubernetes.io/name"
CLIENT = "tritonkit.dev/client"
WATCHERS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
LOG = "/log/server.log"
# A gRPC client goes to all pods that the Service had when it looked, and looks again only when a connection ends: each
# ends after a minute, or when the answers on it are complete, at most an hour later.
CONNECTION_MS = {"": 60_000, "-grace": 3_600_000}
LOG_PORT = 9103
# Whoever runs a model at the server's ports needs this key, if the cluster has a secret of this name.
INFERENCE: dict[str, Any] = {
    "name": INFERENCE_KEY,
    "valueFrom": {"secretKeyRef": {"name": "tritonkit-inference-key", "key": "key", "optional": True}},
}


def labels(facts: Facts) -> dict[str, str]:
    """What all objects carry and select by."""
    return {LABEL: facts.name}


def start_s(facts: Facts, wishes: Wishes) -> int:
    """How long a start may take: reading all weights, the engines' own start, and the server."""
    return 60 + ceil(facts.weight_bytes / wishes.read_bytes_s) + wishes.engine_start_s * bool(facts.engines)


def grace_s(wishes: Wishes) -> int:
    """How long a pod may take to end: more than the drain, or the drain would be cut off."""
    return GONE_S + wishes.drain_s + MARGIN_S


def deployment(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """The server's Deployment. Replicas are left to the scaler, which would otherwise be undone by each apply."""
    pod = {
        "terminationGracePeriodSeconds": grace_s(wishes),
        "automountServiceAccountToken": False,
        "securityContext": RIGHTS,
        "containers": [container(facts, wishes), log_reader(facts)],
        "volumes": [
            {"name": "models", "persistentVolumeClaim": {"claimName": wishes.models_claim, "readOnly": True}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": quantity(facts.shm_bytes)}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "cache", "emptyDir": {}},
            {"name": "log", "emptyDir": {"sizeLimit": "1Gi"}},
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels(facts)},
            }
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": facts.name, "labels": labels(facts)},
        "spec": {
            "selector": {"matchLabels": labels(facts)},
            # Never fewer than before: the new pod needs a free GPU, and takes over once its entry model answers.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": start_s(facts, wishes) + 600,
            "template": {"metadata": {"labels": labels(facts)}, "spec": pod},
        },
    }


def container(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """The server's container: models one at a time, the language model last, as the plan counts them."""
    gpu = {"nvidia.com/gpu": str(facts.gpus)}
    traces = trace_flags(wishes.traces_url, rate=wishes.trace_rate) if wishes.traces_url else []
    ready = {"path": f"/v2/models/{facts.pipeline}/ready", "port": "http"}
    return {
        "name": "triton",
        "image": facts.image,
        "command": ["python3", "-m", "starter", "run", "--config-name", "gpu"],
        "args": [
            *(f"--load-timeout-s={start_s(facts, wishes)}", "--", "tritonserver"),
            *facts.flags,
            f"--exit-timeout-secs={wishes.drain_s}",
            "--log-format=ISO8601",
            f"--log-file={LOG}",
            *(f"--grpc-max-connection-age{name}={ms}" for name, ms in CONNECTION_MS.items()),
            *traces,
        ],
        "env": [{"name": "TRITONKIT_ENTRY", "value": ",".join(facts.entries)}, INFERENCE],
        "ports": [{"name": one, "containerPort": port} for one, port in PORTS.items()],
        # Until the entry model answers nothing else is asked: a liveness probe that ran meanwhile would kill a server
        # that is only loading, again and again.
        "startupProbe": {
            "httpGet": ready,
            "periodSeconds": PROBE_S,
            "timeoutSeconds": 5,
            "failureThreshold": ceil(start_s(facts, wishes) / PROBE_S),
        },
        # The server's own health says ready while an ensemble was refused: the entry model is asked by name.
        "readinessProbe": {"httpGet": ready, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {
            "httpGet": {"path": "/v2/health/live", "port": "http"},
            "periodSeconds": PROBE_S,
            "timeoutSeconds": 10,
            "failureThreshold": 6,
        },
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(GONE_S)]}}},
        "resources": {
            "requests": {"cpu": "4", "memory": quantity(facts.memory_bytes), **gpu},
            "limits": {"memory": quantity(facts.memory_bytes * 3 // 2), **gpu},
        },
        "securityContext": CONFINED,
        "volumeMounts": [
            {"name": "models", "mountPath": "/models", "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "cache", "mountPath": "/cache"},
            {"name": "log", "mountPath": "/log"},
        ],
    }


def log_reader(facts: Facts) -> dict[str, Any]:
    """The container that prints the server's log, and counts in it what the server has no metric of."""
    where = ["--host", "0.0.0.0", "--port", str(LOG_PORT)]
    return {
        "name": "log",
        "image": facts.worker_image,
        "command": ["python3", "-m", "deploy", "log-metrics", LOG, *where],
        "ports": [{"name": "log-metrics", "containerPort": LOG_PORT}],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": CONFINED,
        # It gives back what it has printed, or the log would fill the volume and the pod be evicted.
        "volumeMounts": [{"name": "log", "mountPath": "/log"}],
    }


def service(facts: Facts) -> dict[str, Any]:
    """The Service, headless: its name has the address of every pod, and our gRPC clients go to all of them in turn."""
    offered = {**PORTS, "log-metrics": LOG_PORT}
    ports = [{"name": one, "port": port, "targetPort": one} for one, port in offered.items()]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": facts.name, "labels": labels(facts)},
        "spec": {"clusterIP": "None", "selector": labels(facts), "ports": ports},
    }


def disruption_budget(labels: dict[str, str], name: str) -> dict[str, Any]:
    """One pod at a time may be taken away on purpose."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "labels": labels},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
    }


def network_policy(facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """Who may ask: pods labelled as clients; and metrics for the namespace `monitoring`."""
    clients = {"podSelector": {"matchLabels": {CLIENT: "true"}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": facts.name, "labels": labels(facts)},
        "spec": {
            "podSelector": {"matchLabels": labels(facts)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"from": [clients], "ports": [{"port": "http"}, {"port": "grpc"}]},
                {"from": [WATCHERS], "ports": [{"port": "metrics"}, {"port": "log-metrics"}]},
            ],
            "egress": egress(wishes),
        },
    }


def egress(wishes: Wishes) -> list[dict[str, Any]]:
    """Whom the server asks: nobody, but for the collector of traces and the names of the cluster to find it."""
    if not wishes.traces_url:
        return []
    names = [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    return [{"to": [WATCHERS], "ports": [{"port": urlsplit(wishes.traces_url).port or 80}]}, {"ports": names}]


def quantity(size: int) -> str:
    """Bytes as Kubernetes writes them, in whole MiB or GiB."""
    return f"{size // GIB}Gi" if size % GIB == 0 else f"{ceil(size / 2**20)}Mi"
