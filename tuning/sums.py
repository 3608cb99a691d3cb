"""The sums of a fleet in words, and its tables: what `tritonkit plan --users` prints and docs/scale.md shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuning.day import compared
from tuning.fleet import Capacity, Fleet, request_bytes


def sums(assumed: Mapping[str, Any], one: Capacity) -> list[str]:
    """What one GPU answers, and why."""
    people, request = assumed["people"], assumed["request"]
    parts = " + ".join(f"{name} {1000 * seconds:.3g}" for name, seconds in one.gpu_s.items())
    bounds = ", ".join(f"{name} {_rate(rate)}" for name, rate in sorted(one.bounds.items(), key=lambda item: item[1]))
    return [
        "Assumed, not measured: what people ask, and service times from the GPU's data sheet.",
        f"in the busiest hour {people['active_in_busiest_hour']:.0%} of the users send "
        f"{people['requests_per_active_hour']} requests each: {request['audio_share']:.0%} with "
        f"{request['audio_seconds']} s of sound, {request['image_share']:.0%} with a picture, "
        f"{request['prompt_tokens']} tokens in, {request['answer_tokens']} out; "
        f"{request_bytes(assumed) / 1e6:.2f} MB come in with one",
        f"GPU milliseconds of a request on {one.gpu.name}: {parts} = {1000 * sum(one.gpu_s.values()):.3g}",
        f"one {one.gpu.name} answers, by each bound alone: {bounds}",
        f"so {_rate(one.per_s)} ({one.bound}), with {one.sequences:.0f} answers being written at once",
    ]


def fleet_row(found: Fleet, one: Capacity) -> dict[str, str]:
    """A number of users, and what they need."""
    return {
        "users": f"{found.users:,}",
        "requests/s": f"{found.per_s:.3g}",
        one.gpu.name: str(found.gpus),
        "machines": str(found.nodes),
        "$ a month": f"{found.month:,.0f}",
        "$ a user": f"{found.month / found.users:.3g}",
        "Gbit/s in": f"{found.gbit:.2g}",
        "what decides": found.bound,
    }


def day_row(found: Fleet, assumed: Mapping[str, Any], one: Capacity) -> dict[str, str]:
    """A day with a fleet that follows its load, beside the fixed one."""
    fixed, scaled = compared(assumed, found.per_s, one.per_s, found.gpus)
    return {
        "users": f"{found.users:,}",
        "GPU hours a day, fixed": f"{fixed.gpu_hours:,.0f}",
        "following the load": f"{scaled.gpu_hours:,.0f}",
        "saved": f"{1 - scaled.gpu_hours / fixed.gpu_hours:.0%}",
        "minutes short": str(scaled.short_minutes),
        "late": f"{scaled.late_share:.2%}",
    }


def _rate(per_s: float) -> str:
    return f"{per_s:.3g}/s"
