"""What is asked of Prometheus, each query once: the rules, the dashboard and the scalers use the same.

`nv_*` are Triton's, `tritonkit_llm_*` the served language model's, other `tritonkit_*` those of gateway, worker and
log; names with colons are recorded by our rules.
"""

from collections.abc import Sequence

WINDOW = "2m"
QUEUE_S = "tritonkit:queue_seconds:mean"
QUEUE_WORST_S = "tritonkit:queue_seconds:worst_step"
REQUESTS_S = "tritonkit:requests:rate"
FAILURES_SHARE = "tritonkit:failures:share"
BATCH_SIZE = "tritonkit:batch_size:mean"
COMPUTE_S = "tritonkit:compute_seconds:mean"
FIRST_TOKEN_S = "tritonkit:first_token_seconds:p95"
TOKENS_S = "tritonkit:completion_tokens:rate"
ENGINE_WAITING = "tritonkit:engine_waiting:worst"
GPU_HOURS = "tritonkit:gpu_hours:per_thousand_requests"


def models(names: Sequence[str]) -> str:
    """The selector of some models."""
    return f'model=~"{"|".join(names)}"'


def per_request(duration: str, selector: str = "") -> str:
    """Seconds per request of a model and pod, of a counter of microseconds; nothing where nothing was asked."""
    picked = f"{{{selector}}}" if selector else ""
    asked = f"rate(nv_inference_request_success{picked}[{WINDOW}])"
    by = "sum by (namespace, pod, model)"
    return f"({by} (rate({duration}{picked}[{WINDOW}])) / {by} ({asked} > 0)) / 1e6"


def recorded(queued: Sequence[str], entries: Sequence[str], gpus: int) -> dict[str, str]:
    """The recorded names and what they record.

    Args:
        gpus: of each server; one that nobody asks costs as much as a busy one.
    """
    failed = f'sum by (namespace, model) (rate(nv_inference_request_failure{{reason!="CANCELED"}}[{WINDOW}]))'
    good = f"sum by (namespace, model) (rate(nv_inference_request_success[{WINDOW}]))"
    counted = "sum by (namespace, pod, model)"
    first_token = f"rate(tritonkit_llm_time_to_first_token_seconds_bucket[{WINDOW}])"
    asked = f"sum(rate(nv_inference_request_success{{{models(entries)}}}[{WINDOW}]))"
    return {
        QUEUE_S: per_request("nv_inference_queue_duration_us"),
        QUEUE_WORST_S: f"max by (namespace, pod) ({per_request('nv_inference_queue_duration_us', models(queued))})",
        COMPUTE_S: per_request("nv_inference_compute_infer_duration_us"),
        BATCH_SIZE: (
            f"{counted} (rate(nv_inference_count[{WINDOW}])) / {counted} (rate(nv_inference_exec_count[{WINDOW}]) > 0)"
        ),
        REQUESTS_S: f"sum by (namespace, model) (rate(nv_inference_request_success{{{models(entries)}}}[{WINDOW}]))",
        FAILURES_SHARE: f"{failed} / ({failed} + {good} > 0)",
        FIRST_TOKEN_S: f"histogram_quantile(0.95, sum by (namespace, pod, model, le) ({first_token}))",
        TOKENS_S: f"{counted} (rate(tritonkit_llm_completion_tokens_total[{WINDOW}]))",
        ENGINE_WAITING: "max by (namespace, pod) (tritonkit_llm_waiting_requests)",
        GPU_HOURS: f'{gpus} * count(up{{job="triton"}} == 1) * 1000 / 3600 / ({asked} > 0)',
    }
