"""The rules for Prometheus: what is recorded, and when somebody is called, with a page that says what to do."""

from typing import Any

from deploy.facts import Facts
from deploy.monitoring import queries
from deploy.wishes import Wishes


def rule_groups(facts: Facts, wishes: Wishes) -> list[dict[str, Any]]:
    """The groups of a rule file, or of a PrometheusRule."""
    recorded = queries.recorded(facts.queued, facts.entries, facts.gpus)
    return [
        {
            "name": f"tritonkit-{facts.pipeline}-recorded",
            "interval": "15s",
            "rules": [{"record": name, "expr": query} for name, query in recorded.items()],
        },
        {
            "name": f"tritonkit-{facts.pipeline}-alerts",
            "rules": [linked(one, wishes.runbook) for one in alerts(facts, wishes)],
        },
    ]


def alerts(facts: Facts, wishes: Wishes) -> list[dict[str, Any]]:
    """Every alert."""
    steps = queries.models(facts.queued)
    rejected = f'rate(nv_inference_request_failure{{reason="REJECTED"}}[{queries.WINDOW}])'
    pinned = "nv_pinned_memory_pool_used_bytes / nv_pinned_memory_pool_total_bytes"
    gpu = "nv_gpu_memory_used_bytes / nv_gpu_memory_total_bytes"
    entry = f'nv_inference_request_success{{model="{facts.pipeline}"}}'
    return [
        alert("TritonDown", 'up{job="triton"} == 0', "1m", "page", "A Triton server does not answer Prometheus"),
        alert(
            "TritonEntryMissing",
            f'absent({entry}) and on () (up{{job="triton"}} == 1)',
            "5m",
            "page",
            f"No server has loaded {facts.pipeline}",
        ),
        alert(
            "TritonRequestsFail",
            f"{queries.FAILURES_SHARE} > 0.05",
            "5m",
            "page",
            "{{ $labels.model }} fails {{ $value | humanizePercentage }} of its requests",
        ),
        alert(
            "TritonRejects",
            f"sum by (namespace, model) ({rejected}) > 0",
            "5m",
            "ticket",
            "{{ $labels.model }} turns requests away: its queue is full or too slow",
        ),
        alert(
            "TritonQueueLong",
            f"{queries.QUEUE_S}{{{steps}}} > {4 * wishes.queue_s:g}",
            "10m",
            "ticket",
            "Requests wait {{ $value | humanizeDuration }} before {{ $labels.model }}",
        ),
        alert(
            "TritonFirstTokenSlow",
            f"{queries.FIRST_TOKEN_S} > {wishes.first_token_s:g}",
            "10m",
            "ticket",
            "One in twenty waits {{ $value | humanizeDuration }} for the first token of {{ $labels.model }}",
        ),
        alert(
            "TritonKvCacheFull",
            "tritonkit_llm_kv_cache_usage > 0.95 and on (namespace, pod) tritonkit_llm_waiting_requests > 0",
            "10m",
            "ticket",
            "The KV cache of {{ $labels.model }} is full, and requests wait for it",
        ),
        alert(
            "TritonCudaPoolFull",
            'tritonkit_server_fallbacks_total{pool="cuda"} > 0',
            "0m",
            "ticket",
            "Tensors between steps go through the host: the CUDA pool was full",
        ),
        alert("TritonPinnedMemoryFull", f"{pinned} > 0.95", "10m", "ticket", "The pinned memory pool is full"),
        alert("TritonGpuMemoryFull", f"{gpu} > 0.98", "10m", "ticket", "GPU {{ $labels.gpu_uuid }} has no memory left"),
    ]


def alert(name: str, query: str, lasting: str, severity: str, summary: str) -> dict[str, Any]:
    """One alert."""
    return {
        "alert": name,
        "expr": query,
        "for": lasting,
        "labels": {"severity": severity},
        "annotations": {"summary": summary},
    }


def linked(alert: dict[str, Any], runbook: str) -> dict[str, Any]:
    """The alert with the section of the runbook that has its name."""
    return {**alert, "annotations": {**alert["annotations"], "runbook_url": f"{runbook}#{alert['alert'].lower()}"}}
