"""Who asks the server: the gateway, and a worker on a Kafka topic. Neither needs a GPU."""

from dataclasses import dataclass
from typing import Any

from deploy.facts import Facts
from deploy.kubernetes.scaling import HPA, KEDA, scaler
from deploy.kubernetes.serving import CLIENT, CONFINED, GONE_S, INFERENCE, LABEL, MARGIN_S, PORTS, RIGHTS, WATCHERS
from deploy.wishes import Wishes

KEYS_SECRET = "tritonkit-api-keys"
GATEWAY_PORT, WORKER_PORT = 9000, 9101


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that asks the server: its command, the port it serves, and the path that says it is well."""

    name: str
    image: str
    command: tuple[str, ...]
    port: int
    health: str
    environment: tuple[dict[str, Any], ...] = ()


def gateway(facts: Facts) -> Program:
    """The gateway; its keys come from a secret, one a line."""
    key = {"secretKeyRef": {"name": KEYS_SECRET, "key": "keys"}}
    return Program(
        name=f"{facts.name}-gateway",
        image=facts.gateway_image,
        command=("python3", "-m", "clients", "gateway", "--host", "0.0.0.0", "--port", str(GATEWAY_PORT)),
        port=GATEWAY_PORT,
        health="/health",
        environment=(address(facts), INFERENCE, {"name": "TRITONKIT_API_KEYS", "valueFrom": key}),
    )


def worker(facts: Facts, wishes: Wishes) -> Program:
    """The worker on the topic that was wished."""
    topics = ("--inbound", wishes.inbound, "--outbound", wishes.outbound, "--group", group(facts))
    where = ("--brokers", wishes.brokers, "--metrics-host", "0.0.0.0", "--metrics-port", str(WORKER_PORT))
    how = ("--drain", str(wishes.drain_s), "--in-flight", str(wishes.at_once))
    return Program(
        name=f"{facts.name}-worker",
        image=facts.worker_image,
        command=("python3", "-m", "worker", "worker", "--pipeline", facts.pipeline, *topics, *where, *how),
        port=WORKER_PORT,
        health="/metrics",
        environment=(address(facts), INFERENCE),
    )


def group(facts: Facts) -> str:
    """The consumer group of a pipeline's workers."""
    return f"tritonkit-{facts.pipeline}"


def address(facts: Facts) -> dict[str, Any]:
    """Where the server is."""
    return {"name": "TRITONKIT_URL", "value": f"grpc://{facts.name}:{PORTS['grpc']}"}


def labels(program: Program) -> dict[str, str]:
    """What its objects carry and select by."""
    return {LABEL: program.name}


def deployment(program: Program, wishes: Wishes) -> dict[str, Any]:
    """Its Deployment; replicas are left to the scaler."""
    probe = {"httpGet": {"path": program.health, "port": "http"}, "timeoutSeconds": 5}
    container = {
        "name": "main",
        "image": program.image,
        "command": list(program.command),
        "env": list(program.environment),
        "ports": [{"name": "http", "containerPort": program.port}],
        "startupProbe": {**probe, "periodSeconds": 5, "failureThreshold": 60},
        "readinessProbe": {**probe, "periodSeconds": 5},
        "livenessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 6},
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(GONE_S)]}}},
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": CONFINED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "terminationGracePeriodSeconds": GONE_S + wishes.drain_s + MARGIN_S,
        "automountServiceAccountToken": False,
        "securityContext": RIGHTS,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    # The label lets it through to the server.
    marked = {**labels(program), CLIENT: "true"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": program.name, "labels": labels(program)},
        "spec": {
            "selector": {"matchLabels": labels(program)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": marked}, "spec": pod},
        },
    }


def service(program: Program) -> dict[str, Any]:
    """Its Service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": program.name, "labels": labels(program)},
        "spec": {
            "selector": labels(program),
            "ports": [{"name": "http", "port": program.port, "targetPort": "http"}],
        },
    }


def network_policy(program: Program, *, is_open: bool) -> dict[str, Any]:
    """Who may ask it: everybody in the cluster, or only who watches it."""
    rule: dict[str, Any] = {"ports": [{"port": "http"}]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": program.name, "labels": labels(program)},
        "spec": {
            "podSelector": {"matchLabels": labels(program)},
            "policyTypes": ["Ingress"],
            "ingress": [rule if is_open else {"from": [WATCHERS], **rule}],
        },
    }


def processor_scaler(program: Program, wishes: Wishes) -> dict[str, Any]:
    """The gateway's HPA: it computes (audio, pictures, JSON), so its processors say when it is full."""
    usage = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    rest = {
        "minReplicas": 2,
        "maxReplicas": max(2, 2 * wishes.most),
        "metrics": [{"type": "Resource", "resource": usage}],
    }
    return scaler(HPA, program.name, labels(program), rest)


def lag_scaler(program: Program, facts: Facts, wishes: Wishes) -> dict[str, Any]:
    """KEDA's object for the worker: one for each so many messages behind, none when there are none."""
    metadata = {
        "bootstrapServers": wishes.brokers,
        "consumerGroup": group(facts),
        "topic": wishes.inbound,
        "lagThreshold": str(10 * wishes.at_once),
        "activationLagThreshold": "0",
        "offsetResetPolicy": "earliest",
    }
    rest = {
        "minReplicaCount": 0,
        "maxReplicaCount": wishes.most,
        "cooldownPeriod": 300,
        "triggers": [{"type": "kafka", "metadata": metadata}],
    }
    return scaler(KEDA, program.name, labels(program), rest)
