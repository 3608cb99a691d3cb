"""One self-contained page about a load: how fast, how often right, when, and where the server's time went.

In: a Result. Out: HTML; no script, nothing from elsewhere, light and dark, printable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from load.chart import Line, histogram, lines, stacks
from load.results import Percentiles, Result
from load.statistics import ModelCounts
from load.summary import item_rows
from load.timeline import timeline
from load.words import duration, pattern, rate, share

_STYLE = """
  :root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --edge: #d0d7de; --page: #ffffff;
    --right: #0969da; --wrong: #cf222e; --slow: #9a6700; --fair: #9a6700; --queue: #bf8700; --input: #57a6a8;
    --infer: #0969da; --output: #8250df; }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6edf3; --soft: #9198a1; --edge: #30363d; --page: #0d1117; --right: #4493f8; --wrong: #f85149;
      --slow: #d29922; --fair: #d29922; --queue: #d29922; --input: #57a6a8; --infer: #4493f8; --output: #ab7df8; }
  }
  body { margin: 0 auto; max-width: 960px; padding: 16px; background: var(--page); color: var(--ink);
    font: 15px/1.5 ui-sans-serif, system-ui, sans-serif; }
  h1 { font-size: 24px; margin: 8px 0; } h2 { font-size: 18px; margin: 28px 0 8px; }
  p { margin: 4px 0; } .soft { color: var(--soft); } .wrong-text { color: var(--wrong); }
  .facts { display: flex; flex-wrap: wrap; gap: 10px; margin: 14px 0; padding: 0; list-style: none; }
  .facts li { border: 1px solid var(--edge); border-radius: 8px; padding: 8px 14px; min-width: 104px; }
  .facts b { display: block; font-size: 21px; font-variant-numeric: tabular-nums; white-space: nowrap; }
  .warning { border-left: 4px solid var(--fair); padding: 4px 12px; margin: 8px 0; }
  .wide { overflow-x: auto; } .wide svg { display: block; min-width: 640px; width: 100%; height: auto; }
  svg text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: var(--soft); }
  svg text.strong { fill: var(--ink); font-weight: 600; paint-order: stroke; stroke: var(--page); stroke-width: 4px; }
  .grid, .axis, .mark, .line { fill: none; stroke: var(--edge); } .axis { stroke: var(--soft); }
  .mark { stroke: var(--ink); stroke-dasharray: 4 3; } .line { stroke-width: 2; stroke-linejoin: round; }
  .bar.right { fill: var(--right); } .bar.wrong { fill: var(--wrong); }
  .line.right { stroke: var(--right); } .line.slow { stroke: var(--slow); }
  .line.offered { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 5 4; }
  .dot.right { fill: var(--right); } .dot.slow { fill: var(--slow); }
  table { border-collapse: collapse; width: 100%; font-size: 14px; }
  th, td { text-align: left; padding: 5px 10px; border-bottom: 1px solid var(--edge); white-space: nowrap; }
  th { color: var(--soft); font-weight: 500; } th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; }
  td.words { white-space: normal; overflow-wrap: anywhere; min-width: 8em; }
  .key { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 4px 0; padding: 0; list-style: none; font-size: 14px; }
  .key i, .spent i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; }
  .spent { display: flex; width: 180px; height: 14px; border-radius: 3px; overflow: hidden; }
  @media print { body { max-width: none; padding: 0; } section { break-inside: avoid; } }
"""
STAGES = ("queue", "input", "infer", "output")
STAGE_WORDS = {"queue": "queue", "input": "input", "infer": "compute", "output": "output"}


def load_page(result: Result, about: Mapping[str, str]) -> str:
    """The page; about: what else should be known of the load, such as the model and the server."""
    title = f"{about.get('model', 'load')}: {pattern(result.arrivals)}"
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            f'<p class="soft">{escape("; ".join([*about.values(), f"{result.seconds:g} s from {result.began}"]))}</p>',
            *_facts(result),
            *(f'<p class="warning">{escape(words)}</p>' for words in result.warnings),
            *_problems(result),
            *_distributions(result),
            *_timeline(result),
            *_server(result.models),
            *_items(result),
            *_generator(result),
            "</body></html>\n",
        )
    )


def _facts(result: Result) -> Iterator[str]:
    latency = result.latency_s
    facts = [
        (rate(result.per_s), "right answers"),
        (share(result.error_rate), "not right"),
        (duration(latency.p50), "latency p50"),
        (duration(latency.p95), "latency p95"),
        (duration(latency.p99), "latency p99"),
    ]
    if result.first_part_s:
        facts.append((duration(result.first_part_s.p50), "first part p50"))
    if result.first_token_s:
        facts += [
            (duration(result.first_token_s.p50), "first token p50"),
            (duration(result.first_token_s.p95), "first token p95"),
        ]
    if result.between_tokens_s:
        facts.append((duration(result.between_tokens_s.p50), "between tokens p50"))
        facts.append((rate(result.tokens_per_s), "tokens"))
    items = "".join(
        f"<li><b{' class=wrong-text' if words == 'not right' and result.error_rate else ''}>{number}</b>"
        f'<span class="soft">{words}</span></li>'
        for number, words in facts
    )
    yield f'<ul class="facts">{items}</ul>'


def _problems(result: Result) -> Iterator[str]:
    counts = {str(one): count for one, count in result.outcomes.items() if count}
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
    yield f"<p>{len(result.records):,} requests: {told or 'none'}.</p>"
    if result.problems:
        rows = [
            f'<tr><td class="n">{count:,}</td><td class="words">{escape(words)}</td></tr>'
            for words, count in list(result.problems.items())[:20]
        ]
        yield _section("What was not right", _table(("n:times", "what"), rows))


def _distributions(result: Result) -> Iterator[str]:
    charts = [("Latency", "from when a request should have been sent", [one.latency_s for one in result.right])]
    if result.first_token_s:
        first = [one.token_s[0] - one.intended_s for one in result.right if one.token_s]
        charts.append(("Time to first token", "from when the request should have been sent", first))
    for name, meaning, values in charts:
        if values:
            found = Percentiles.of(values)
            marks = {"p50": found.p50, "p95": found.p95, "p99": found.p99}
            svg = histogram(values, marks, duration, f"{name} of right answers")
            yield _section(f"{name} of right answers", f'<p class="soft">{meaning}; requests by time</p>{_wide(svg)}')


def _timeline(result: Result) -> Iterator[str]:
    moments = timeline(result)
    starts, length = [one.start_s for one in moments], moments[0].end_s - moments[0].start_s
    latencies = (
        Line(name="p50", style="right", values=[one.p50 for one in moments]),
        Line(name="p95", style="slow", values=[one.p95 for one in moments]),
    )
    if result.right:
        svg = lines(starts, length, latencies, duration, "latency over time")
        key = _key({"p50": "right", "p95": "slow"})
        words = '<p class="soft">of the right answers to the requests that were to be sent at that time</p>'
        yield _section("Latency over time", f"{words}{key}{_wide(svg)}")
    layers = (
        Line(name="right", style="right", values=[one.right / length for one in moments]),
        Line(name="not right", style="wrong", values=[one.not_right / length for one in moments]),
    )
    offered = Line(name="offered", style="offered", values=[one.offered / length for one in moments])
    svg = stacks(starts, length, layers, offered, rate, "requests over time")
    key = _key({"ended right": "right", "ended not right": "wrong", "sent (dashed)": "ink"})
    yield _section("Requests a second over time", f"{key}{_wide(svg)}")


def _server(models: Mapping[str, ModelCounts]) -> Iterator[str]:
    if not models:
        return
    rows = []
    for name, counts in models.items():
        spent = {stage: getattr(counts, stage).mean_s for stage in STAGES}
        whole = sum(spent.values())
        bar = "".join(
            f'<i style="background: var(--{stage}); width: {seconds / whole * 100:.1f}%" '
            f'title="{STAGE_WORDS[stage]} {duration(seconds)}"></i>'
            for stage, seconds in spent.items()
            if whole
        )
        batches = ", ".join(f"{size}: {one.count:,}" for size, one in sorted(counts.batches.items()))
        cells = "".join(f'<td class="n">{duration(seconds)}</td>' for seconds in spent.values())
        numbers = f'<td class="n">{counts.requests:,}</td><td class="n">{counts.failed:,}</td>'
        rows.append(
            f"<tr><td>{escape(name)}</td>{numbers}{cells}"
            f'<td><div class="spent">{bar}</div></td>'
            f'<td class="n">{counts.mean_batch:.2f}</td><td>{batches}</td></tr>'
        )
    heads = (
        "model",
        "n:requests",
        "n:failed",
        *(f"n:{STAGE_WORDS[one]}" for one in STAGES),
        "share",
        "n:batch",
        "sizes",
    )
    key = _key({STAGE_WORDS[stage]: stage for stage in STAGES})
    words = (
        '<p class="soft">By the server&#39;s own statistics: mean per request. "batch" is requests per execution, '
        '"sizes" how many executions had each batch size. '
        "An ensemble&#39;s compute is the sum of its steps&#39;; it has no queue of its own.</p>"
    )
    yield _section("Where the server&#39;s time went", f"{words}{key}{_wide(_table(heads, rows))}")


def _items(result: Result) -> Iterator[str]:
    rows = [
        f'<tr><td class="words">{escape(row["name"])}</td><td class="n">{row["requests"]:,}</td>'
        f'<td class="n">{row["not_right"]:,}</td><td class="n">{duration(row["alone_s"])}</td>'
        f'<td class="n">{duration(row["p50"])}</td><td class="n">{duration(row["p95"])}</td></tr>'
        for row in item_rows(result)
    ]
    heads = ("input", "n:requests", "n:not right", "n:alone", "n:p50", "n:p95")
    yield _section("Inputs", _wide(_table(heads, rows)))


def _generator(result: Result) -> Iterator[str]:
    own = result.generator
    told = [f"Its busiest process used {share(own.cpu_share)} of a core"]
    if math.isfinite(own.late_s.p95):
        told.append(f"95 % of the requests were sent within {duration(own.late_s.p95)} of when they should")
    if own.ceiling_per_s:
        told.append(f"with no model behind it sends and reads {rate(own.ceiling_per_s)}")
    alike = "compared with what the same input gave alone" if result.is_compared else "not compared"
    yield _section("The load generator", f"<p>{escape('; '.join(told))}. Answers were {alike}.</p>")


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{title}</h2>{inside}</section>"


def _wide(inside: str) -> str:
    return f'<div class="wide" tabindex="0">{inside}</div>'


def _key(colours: Mapping[str, str]) -> str:
    items = "".join(f'<li><i style="background: var(--{colour})"></i>{name}</li>' for name, colour in colours.items())
    return f'<ul class="key">{items}</ul>'


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    cells = "".join(
        f'<th class="n">{head.removeprefix("n:")}</th>' if head.startswith("n:") else f"<th>{head}</th>"
        for head in heads
    )
    return f"<table><tr>{cells}</tr>{''.join(rows)}</table>"
