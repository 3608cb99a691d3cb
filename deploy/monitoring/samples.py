"""Two looks at a server's /metrics come in; what each model did between them goes out. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

LINE = re.compile(r"^((?:nv_inference|tritonkit_llm)_\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
LLM = "tritonkit_llm"
Counts = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model in the time between two looks; times in milliseconds per request, None where nothing was asked.

    The last three are a language model's: its mean wait for a first token, tokens written, KV cache in use (0 to 1).
    `waiting` counts those in the server's queue and in its engine.
    """

    model: str
    requests_s: float
    failures_s: float
    batch: float | None
    queue_ms: float | None
    compute_ms: float | None
    waiting: int
    first_token_ms: float | None = None
    tokens_s: float | None = None
    kv_share: float | None = None


def read_counts(text: str) -> dict[tuple[str, str], float]:
    """The counters by name and model, over all versions and reasons; cancelled requests are no failures."""
    counts: dict[tuple[str, str], float] = {}
    for name, labelled, value in LINE.findall(text):
        labels = dict(LABEL.findall(labelled))
        if labels.get("reason") != "CANCELED":
            key = (name, labels.get("model", ""))
            counts[key] = counts.get(key, 0.0) + float(value)
    return counts


def rows_between(before: Counts, after: Counts, seconds: float) -> list[Row]:
    """Each model, the busiest first."""
    models = sorted({model for _, model in after})
    return sorted((row(model, before, after, seconds) for model in models), key=lambda one: -one.requests_s)


def row(model: str, before: Counts, after: Counts, seconds: float) -> Row:
    """One model's row."""

    def grown(name: str, family: str = "nv_inference") -> float:
        key = (f"{family}_{name}", model)
        # A counter that fell was set back: the server is another one.
        return after.get(key, 0.0) - before.get(key, 0.0) if after.get(key, 0.0) >= before.get(key, 0.0) else 0.0

    def now(name: str) -> float | None:
        return after.get((name, model))

    asked, run, first = (
        grown("request_success"),
        grown("exec_count"),
        grown("time_to_first_token_seconds_count", LLM),
    )
    return Row(
        model=model,
        requests_s=asked / seconds,
        failures_s=grown("request_failure") / seconds,
        batch=grown("count") / run if run else None,
        queue_ms=grown("queue_duration_us") / asked / 1000 if asked else None,
        compute_ms=grown("compute_infer_duration_us") / asked / 1000 if asked else None,
        waiting=int(now("nv_inference_pending_request_count") or 0) + int(now(f"{LLM}_waiting_requests") or 0),
        first_token_ms=grown("time_to_first_token_seconds_sum", LLM) / first * 1000 if first else None,
        tokens_s=None if now(f"{LLM}_kv_cache_usage") is None else grown("completion_tokens_total", LLM) / seconds,
        kv_share=now(f"{LLM}_kv_cache_usage"),
    )
