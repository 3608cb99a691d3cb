"""What a person decides about a deployment; everything else follows from the plan."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """A person's part of a deployment.

    Attributes:
        namespace: where the objects go.
        least, most: replicas; 0 is possible with KEDA only.
        queue_s: mean time in a step's queue above which there should be more replicas.
        first_token_s: how long nineteen of twenty may wait for a language model's first token.
        drain_s: how long requests in flight may take when a pod ends.
        read_bytes_s: how fast weights come from their disk.
        engine_start_s: how long an engine takes beside reading: compiling, capturing graphs.
        models_claim: the volume claim that holds the model repository.
        prometheus: address of Prometheus, for KEDA.
        at_once: requests at once for which one server is planned; as many may wait in its engine, or be in flight in
            a worker, before there should be more.
        traces_url: collector of traces, OTLP over HTTP; none if empty.
        trace_rate: of how many requests one is traced, besides those whose callers trace.
        runbook: where docs/runbook.md is to be read; each alert links to a section of it.
        brokers, inbound, outbound: Kafka and the topics of a worker; no worker without inbound.
    """

    namespace: str = "tritonkit"
    least: int = 1
    most: int = 4
    queue_s: float = 0.05
    first_token_s: float = 2.0
    drain_s: int = 30
    read_bytes_s: int = 200 * 10**6
    engine_start_s: int = 180
    models_claim: str = "model-repository"
    prometheus: str = "http://prometheus-operated.monitoring.svc:9090"
    at_once: int = 8
    traces_url: str = ""
    trace_rate: int = 100
    runbook: str = "docs/runbook.md"
    brokers: str = "kafka:9092"
    inbound: str = ""
    outbound: str = ""
