"""A Result as plain values for JSON: everything but the single requests. Times in seconds; null if never."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from load.outcomes import Outcome
from load.results import Percentiles, Result
from load.timeline import timeline
from load.words import pattern


def summary(result: Result, about: Mapping[str, str]) -> dict[str, Any]:
    """The document.

    Args:
        about: what else should be known of the load, such as the model and the server.
    """
    return _finite(
        {
            "load": {**about, "arrivals": pattern(result.arrivals), "seconds": result.seconds, "began": result.began},
            "requests": len(result.records),
            "outcomes": {str(outcome): count for outcome, count in result.outcomes.items()},
            "error_rate": result.error_rate,
            "problems": dict(result.problems),
            "answers_compared": result.is_compared,
            "offered_per_s": result.offered_per_s,
            "right_per_s": result.per_s,
            "latency_s": asdict(result.latency_s),
            "service_s": asdict(result.service_s),
            "first_part_s": _maybe(result.first_part_s),
            "first_token_s": _maybe(result.first_token_s),
            "between_tokens_s": _maybe(result.between_tokens_s),
            "tokens_per_s": result.tokens_per_s,
            "items": [row for row in item_rows(result)],
            "models": {name: _model(counts) for name, counts in result.models.items()},
            "timeline": [asdict(moment) for moment in timeline(result)],
            "generator": asdict(result.generator),
            "warnings": list(result.warnings),
        }
    )


def item_rows(result: Result) -> list[dict[str, Any]]:
    """Per item: how often it was sent, how often not answered rightly, how long it takes alone and under load."""
    rows = []
    for item, name in enumerate(result.names):
        records = [one for one in result.records if one.item == item]
        right = [one for one in records if one.outcome is Outcome.RIGHT]
        latency = Percentiles.of(one.latency_s for one in right)
        rows.append(
            {
                "name": name,
                "requests": len(records),
                "not_right": len(records) - len(right),
                "alone_s": result.alone_s[item],
                "p50": latency.p50,
                "p95": latency.p95,
            }
        )
    return rows


def _model(counts: Any) -> dict[str, Any]:
    stages = {f"{stage}_s": getattr(counts, stage).mean_s for stage in ("queue", "input", "infer", "output")}
    batches = {str(size): {"executions": one.count, "infer_s": one.mean_s} for size, one in counts.batches.items()}
    whole = {"requests": counts.requests, "executions": counts.executions, "failed": counts.failed}
    return {**whole, "mean_batch": counts.mean_batch, **stages, "batches": batches}


def _maybe(found: Percentiles | None) -> dict[str, float] | None:
    return None if found is None else asdict(found)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
