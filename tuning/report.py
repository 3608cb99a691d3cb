"""What tuning came to: lines for a terminal, a page with the chart, and JSON for `tritonkit plan --users`."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from tuning.chart import Curve, latency_chart
from tuning.settings import Serving, config_with, serving_of
from tuning.tune import Loaded, Tuned

COLUMNS = ("", "before", "after")


def rows(tuned: Tuned) -> list[tuple[str, ...]]:
    """What was seen, before and after; `-` where nothing was tried."""
    loads = (tuned.before, tuned.after)
    seen = [
        ("p50", *(_ms(one.result.latency_s.p50) if one else "-" for one in loads)),
        ("p95", *(_ms(one.p95_s) if one else "-" for one in loads)),
        ("p95, predicted", *(_ms(one.predicted_s[1]) if one else "-" for one in loads)),
        ("answers a second", *(f"{one.result.per_s:.3g}" if one else "-" for one in loads)),
        ("not right", *(f"{one.result.error_rate:.1%}" if one else "-" for one in loads)),
        ("mean batch", *(_batches(tuned, one) if one else "-" for one in loads)),
    ]
    limit = f"up to this rate p95 is {_ms(tuned.promise_s)}, predicted"
    return [*seen, (limit, *(f"{one:.3g}/s" for one in tuned.limits))]


def setting_rows(tuned: Tuned) -> list[tuple[str, ...]]:
    """The settings that change: model and name, before, after."""
    found: list[tuple[str, ...]] = []
    for model, parts in tuned.parts.items():
        before, after = serving_of(tuned.configs[model]), serving_of(config_with(tuned.configs[model], parts))
        found += [
            (f"{model} {name}", old, new)
            for (name, old), (_, new) in zip(_settings(before), _settings(after), strict=True)
            if old != new
        ]
    return found


def chart(tuned: Tuned) -> str:
    """Latencies before and after, as SVG."""
    curves = [_curve(f"before, {tuned.per_s:.3g}/s", tuned.before)]
    if tuned.after:
        curves.append(_curve("after" if tuned.parts else "tried, and not taken", tuned.after))
    return latency_chart(curves, tuned.promise_s)


def page(tuned: Tuned) -> str:
    """All of it as one HTML page."""
    tables = "".join(_table(some) for some in (setting_rows(tuned), rows(tuned)) if some)
    title = f"{tuned.pipeline}: {1000 * tuned.promise_s:g} ms for 95 % of the answers"
    style = "body{font-family:sans-serif;max-width:46rem;margin:2rem auto}td,th{padding:.2rem .8rem;text-align:left}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{style}</style>'
        f"<h1>{escape(title)}</h1>{chart(tuned)}"
        f"<p>Lines are measured, crosses are what the model of the batcher predicted.</p>{tables}</html>\n"
    )


def as_json(tuned: Tuned) -> str:
    """What was measured, for other commands: service times by model, the network as it is served now."""
    network = tuned.network
    values: dict[str, Any] = {
        "pipeline": tuned.pipeline,
        "promise_ms": 1000 * tuned.promise_s,
        "per_s": max(tuned.limits),
        "cores": network.capacity["cpu"],
        "travel_ms": 1000 * (network.before_s + network.after_s),
        "handling_ms": 1000 * network.handling_s,
        "steps": [{"model": step.model, "after": list(step.after)} for step in network.steps],
        "models": {
            name: {"serving": _plain(station.serving), "times": station.times.as_json()}
            for name, station in network.stations.items()
        },
    }
    return json.dumps(values, indent=1) + "\n"


def remark(tuned: Tuned, day: str, cores: int) -> str:
    """A line for tuned.toml: what the settings rest on."""
    after = tuned.after or tuned.before
    return (
        f"{day}, {cores} cores: {tuned.pipeline} at {tuned.per_s:.3g}/s, "
        f"p95 {_ms(tuned.before.p95_s)} before, {_ms(after.p95_s)} after (asked for {_ms(tuned.promise_s)})"
    )


def _plain(serving: Serving) -> dict[str, Any]:
    return {
        "max_batch_size": serving.max_batch_size,
        "dynamic": serving.dynamic,
        "delay_us": round(serving.max_queue_delay_s * 1e6),
        "preferred": list(serving.preferred),
        "instances": serving.instances,
        "threads": serving.threads,
    }


def _settings(serving: Serving) -> list[tuple[str, str]]:
    told = _plain(serving)
    return [
        ("largest batch", str(told["max_batch_size"])),
        ("queue delay", f"{told['delay_us'] / 1000:g} ms"),
        ("preferred sizes", ", ".join(map(str, told["preferred"])) or "the largest"),
        ("instances", str(told["instances"])),
        ("threads each", str(told["threads"] or "all")),
    ]


def _batches(tuned: Tuned, one: Loaded) -> str:
    models = [
        name for name in tuned.configs if name in one.result.models and int(tuned.configs[name]["max_batch_size"])
    ]
    return ", ".join(f"{name} {one.result.models[name].mean_batch:.2f}" for name in models) or "-"


def _curve(name: str, one: Loaded) -> Curve:
    return Curve(name=name, latencies_s=[each.latency_s for each in one.result.right], predicted_s=one.predicted_s)


def _table(some: list[tuple[str, ...]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in some)
    return f"<table><tr>{''.join(f'<th>{name}</th>' for name in COLUMNS)}</tr>{lines}</table>"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1e6 else "never"
