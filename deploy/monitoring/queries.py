"""What is asked of Prometheus, each query once: the rules, the dashboard and the scalers use the same.

`nv_*` are Triton's, `tritonkit_*` the gateway's and the worker's, names with colons are recorded by our rules.
"""

from collections.abc import Sequence

WINDOW = "2m"
QUEUE_S = "tritonkit:queue_seconds:mean"
QUEUE_WORST_S = "tritonkit:queue_seconds:worst_step"
REQUESTS_S = "tritonkit:requests:rate"
FAILURES_SHARE = "tritonkit:failures:share"
BATCH_SIZE = "tritonkit:batch_size:mean"
COMPUTE_S = "tritonkit:compute_seconds:mean"


def models(names: Sequence[str]) -> str:
    """The selector of some models."""
    return f'model=~"{"|".join(names)}"'


def per_request(duration: str, selector: str = "") -> str:
    """Seconds per request of a model and pod, of a counter of microseconds; nothing where nothing was asked."""
    picked = f"{{{selector}}}" if selector else ""
    asked = f"rate(nv_inference_request_success{picked}[{WINDOW}])"
    by = "sum by (namespace, pod, model)"
    return f"({by} (rate({duration}{picked}[{WINDOW}])) / {by} ({asked} > 0)) / 1e6"


def recorded(queued: Sequence[str], entries: Sequence[str]) -> dict[str, str]:
    """The recorded names and what they record."""
    failed = f'sum by (namespace, model) (rate(nv_inference_request_failure{{reason!="CANCELED"}}[{WINDOW}]))'
    good = f"sum by (namespace, model) (rate(nv_inference_request_success[{WINDOW}]))"
    counted = "sum by (namespace, pod, model)"
    return {
        QUEUE_S: per_request("nv_inference_queue_duration_us"),
        QUEUE_WORST_S: f"max by (namespace, pod) ({per_request('nv_inference_queue_duration_us', models(queued))})",
        COMPUTE_S: per_request("nv_inference_compute_infer_duration_us"),
        BATCH_SIZE: (
            f"{counted} (rate(nv_inference_count[{WINDOW}])) / {counted} (rate(nv_inference_exec_count[{WINDOW}]) > 0)"
        ),
        REQUESTS_S: f"sum by (namespace, model) (rate(nv_inference_request_success{{{models(entries)}}}[{WINDOW}]))",
        FAILURES_SHARE: f"{failed} / ({failed} + {good} > 0)",
    }
