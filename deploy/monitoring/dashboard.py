"""The dashboard for Grafana, as the JSON that it imports."""

from collections.abc import Iterator
from typing import Any

from deploy.facts import Facts
from deploy.monitoring import queries

SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT, COLUMNS = 8, 7, 3


def dashboard(facts: Facts) -> dict[str, Any]:
    """A dashboard: the whole pipeline first, then its steps, then the machine."""
    panels = [{**panel, "id": number + 1, "gridPos": place(number)} for number, panel in enumerate(panels_of(facts))]
    return {
        "title": f"tritonkit: {facts.pipeline}",
        "uid": f"tritonkit-{facts.pipeline}"[:40],
        "tags": ["tritonkit", "triton"],
        "schemaVersion": 39,
        "version": 1,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Source"},
                {"name": "gpu_hour", "type": "textbox", "query": "1", "label": "Price of a GPU for an hour"},
            ]
        },
        "panels": panels,
    }


def place(number: int) -> dict[str, int]:
    """Where the n-th panel stands."""
    return {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT}


def panels_of(facts: Facts) -> Iterator[dict[str, Any]]:
    """Every panel, without its place."""
    window, steps = queries.WINDOW, queries.models((*facts.queued, *facts.engines))
    yield graph("Requests", "reqps", (queries.REQUESTS_S, "{{model}}"))
    yield graph("Failures", "percentunit", (queries.FAILURES_SHARE, "{{model}}"))
    yield graph("Wait before each step", "s", (f"{queries.QUEUE_S}{{{steps}}}", "{{model}}"))
    yield graph("Work of each step", "s", (f"{queries.COMPUTE_S}{{{steps}}}", "{{model}}"))
    yield graph("Requests in one execution", "short", (f"{queries.BATCH_SIZE}{{{steps}}}", "{{model}}"))
    waiting = f"sum by (model) (nv_inference_pending_request_count{{{queries.models(facts.queued)}}})"
    yield graph("Waiting in the server", "short", (waiting, "{{model}}"))
    by_reason = f'sum by (model, reason) (rate(nv_inference_request_failure{{reason!="CANCELED"}}[{window}]))'
    yield graph("Failures by reason", "reqps", (by_reason, "{{model}} {{reason}}"))
    if facts.engines:
        quantile = "tritonkit_llm_time_to_first_token_seconds_bucket"
        median = f"histogram_quantile(0.5, sum by (le, model) (rate({quantile}[{window}])))"
        yield graph("First token", "s", (queries.FIRST_TOKEN_S, "95 % {{model}}"), (median, "half {{model}}"))
        read = f"sum by (model) (rate(tritonkit_llm_prompt_tokens_total[{window}]))"
        written = f"sum by (model) ({queries.TOKENS_S})"
        yield graph("Tokens a second", "short", (written, "written {{model}}"), (read, "read {{model}}"))
        yield graph("KV cache in use", "percentunit", ("tritonkit_llm_kv_cache_usage", "{{model}} {{pod}}"))
        running = ("tritonkit_llm_running_requests", "answered {{pod}}")
        yield graph("Requests in the engine", "short", running, ("tritonkit_llm_waiting_requests", "waiting {{pod}}"))
    yield graph("Cost of a thousand requests", "short", (f"{queries.GPU_HOURS} * $gpu_hour", "at $gpu_hour an hour"))
    tokens = f"sum by (kind) (rate(tritonkit_gateway_tokens_total[{window}]))"
    yield graph("Tokens through the gateway", "short", (tokens, "{{kind}}"))
    answered = "tritonkit_gateway_request_seconds_bucket"
    late = f"histogram_quantile(0.95, sum by (le, route) (rate({answered}[{window}])))"
    yield graph("95 % answered by the gateway within", "s", (late, "{{route}}"))
    yield graph("GPU at work", "percentunit", ("nv_gpu_utilization", "{{gpu_uuid}}"))
    used = "nv_gpu_memory_used_bytes / nv_gpu_memory_total_bytes"
    pinned = "nv_pinned_memory_pool_used_bytes / nv_pinned_memory_pool_total_bytes"
    yield graph("Memory in use", "percentunit", (used, "GPU {{gpu_uuid}}"), (pinned, "pinned pool {{pod}}"))
    fallen = "sum by (pod, pool) (tritonkit_server_fallbacks_total)"
    yield graph("Pools that were full (from the log)", "short", (fallen, "{{pool}} {{pod}}"))
    yield graph("Messages behind", "short", ("sum by (topic) (tritonkit_worker_lag)", "{{topic}}"))


def graph(title: str, unit: str, *lines: tuple[str, str]) -> dict[str, Any]:
    """One panel of lines over time: queries and their legends."""
    targets = [
        {"refId": chr(ord("A") + number), "expr": query, "legendFormat": legend, "datasource": SOURCE}
        for number, (query, legend) in enumerate(lines)
    ]
    defaults = {"unit": unit, "min": 0}
    return {
        "title": title,
        "type": "timeseries",
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
    }
