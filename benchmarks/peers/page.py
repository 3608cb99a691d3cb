"""docs/benchmarks.md, from results.json: tables, places, the machine. Nothing is measured here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.remarks import REMARKS
from benchmarks.peers.results import Row, rows_of
from benchmarks.peers.scenarios import SCENARIOS, Scenario
from benchmarks.peers.work.places import ROOT

DOCUMENT = ROOT / "docs" / "benchmarks.md"
CLOSE = 0.03  # less than this apart is no order

INTRODUCTION = """\
# Benchmarks against what people would use instead

Written by `python -m benchmarks.peers page` from [results.json](../benchmarks/peers/results.json); a test compares
the two. Measure again with `make bench-peers` (all of it, more than half an hour), or one scenario with `python -m
benchmarks.peers run detect`.

Everybody serves the same files: the ONNX exports of Whisper tiny.en and YOLOv3-tiny, the small Llama, and, before and
behind them, the same Python functions ([work/](../benchmarks/peers/work)). Each peer is written as its own
documentation recommends, batching on where it is offered, with the same largest batch and the same window as
tritonkit's configs ([apps/](../benchmarks/peers/apps)):

- **FastAPI**: the wrapper that articles show, a plain endpoint around the models; no batching.
- **LitServe**: batched, its fast queue on. **BentoML**: adaptive batching. **Ray Serve**: a composition of
  deployments with `serve.batch`. **PyTriton**: functions bound to a tritonserver, batched by its dynamic batcher.
- **tritonkit, steps by the client**: the same server and models as tritonkit, each called by the client instead of
  one ensemble.
- *no server*: the same functions called in threads of the load's own process. Rows in italics are bounds, not
  contenders.

All contenders of a scenario run at once and are measured in turns, round after round; whoever is not measured is
halted (`SIGSTOP`; Ray, which does not bear it, idles). The load is closed: so many callers, each asking again when it
was answered, with inputs of different sizes. A wrong answer (text not equal, a number off by more than 0.01 + 0.2 %)
is an error, not an answer. Values are medians over the rounds; what compares two contenders (`of tritonkit`, `later`)
is worked out in each turn, and is the median of that: the pace of the machine changes. CPU is that of all processes
of the server per answer (that of the load's own process stands apart where answers are streamed: there it counts);
memory is the most that they had right after a round (PSS, what processes share counted once). Client and servers
share the cores, as everywhere on one machine. Where a round holds few answers, p95 and p99 are its slowest one."""

CHAT_HEAD = (
    "| | answers/s | of tritonkit | first word p50 | p95 | later than {bound} | whole p50 | p95 | p99 "
    "| CPU s | client CPU s | memory | errors |"
)
HEAD = "| | answers/s | of tritonkit | p50 | p95 | p99 | CPU s | memory | errors |"


def page(known: dict[str, Any]) -> str:
    """The whole document."""
    parts = [INTRODUCTION, _machine(known["machine"])]
    for name, scenario in SCENARIOS.items():
        parts += _section(name, scenario, rows_of(known["scenarios"].get(name, [])))
    return "\n\n".join(parts) + "\n"


def _machine(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"Measured on {machine['cores']} cores of {machine['processor']}, {machine['memory_gib']} GiB, no GPU, Python "
        f"{machine['python']}: {versions}."
    )


def _section(name: str, scenario: Scenario, rows: Sequence[Row]) -> list[str]:
    parts = [f"## {scenario.title}", scenario.words]
    for callers in dict.fromkeys(row.callers for row in rows):
        parts += _table(scenario, [row for row in rows if row.callers == callers])
    if not rows:
        parts.append(f"Not measured yet: `python -m benchmarks.peers run {name}`.")
    return [*parts, *([REMARKS[name]] if name in REMARKS else [])]


def _table(scenario: Scenario, rows: Sequence[Row]) -> list[str]:
    ours = next(row for row in rows if row.contender == scenario.contenders[0])
    ranked = [row for row in rows if row.contender not in scenario.bounds]
    ranked.sort(key=lambda row: -(row.share_of(ours) or 0.0))
    bounds = [row for row in rows if row.contender in scenario.bounds]
    reference = bounds[0] if scenario.service == "chat" else None
    head = CHAT_HEAD.format(bound=reference.contender) if reference else HEAD
    lines = [head, "| --- |" + " ---: |" * (head.count("|") - 2)]
    lines += [_line(row, ours, reference, is_bound=False) for row in ranked]
    lines += [_line(row, ours, reference, is_bound=True) for row in bounds]
    callers = f"{ours.callers} caller{'s' if ours.callers > 1 else ''}"
    noise = max(row.others_share for row in rows)
    quiet = f"anything else took at most {noise:.0%} of the CPU"
    return [
        f"**{callers}**, {ours.rounds} round{'s' if ours.rounds > 1 else ''}, {quiet}: {_place(ours, ranked)}",
        "\n".join(lines),
    ]


def _place(ours: Row, ranked: Sequence[Row]) -> str:
    """Which place tritonkit takes, and by how much."""
    others = [row for row in ranked if row is not ours]
    best = others[0]
    ahead = _ahead(ours, best)
    if ahead > CLOSE:
        return f"{ours.contender} is first, {ahead:.0%} more answers than {best.contender}."
    if ahead >= -CLOSE:
        return f"{ours.contender} and {best.contender} are level (within {CLOSE:.0%})."
    place = 1 + sum(_ahead(ours, row) < -CLOSE for row in others)
    return f"{ours.contender} is number {place} of {len(ranked)}, {-ahead:.0%} fewer answers than {best.contender}."


def _ahead(ours: Row, other: Row) -> float:
    """By which part ours answers more than another, who may have answered nothing."""
    share = ours.share_of(other)
    return math.inf if share is None else share - 1


def _line(row: Row, ours: Row, reference: Row | None, *, is_bound: bool) -> str:
    """A line of a table; reference: what first words are compared with, where answers are streamed."""
    name = f"*{row.contender}*" if is_bound else f"**{row.contender}**" if row is ours else row.contender
    share = row.share_of(ours)
    errors = "0" if not row.errors else f"{row.errors} of {row.asked} ({row.errors / row.asked:.1%})"
    firsts = [milliseconds(row.first_p50_s), milliseconds(row.first_p95_s), later(row, reference)] if reference else []
    cells = [
        name,
        f"{row.answers_per_s:.4g}",
        "-" if share is None else f"{share:.2f}",
        *firsts,
        *(milliseconds(value) for value in (row.p50_s, row.p95_s, row.p99_s)),
        *map(cpu_seconds, (row.cpu_s_per_answer, *([row.client_cpu_s_per_answer] if reference else []))),
        f"{row.memory_bytes / 2**20:,.0f} MiB",
        errors,
    ]
    return f"| {' | '.join(cells)} |"


def later(row: Row, reference: Row) -> str:
    """+1.2 ms; a dash of nothing."""
    seconds = None if row is reference else row.later_than(reference)
    return "-" if seconds is None else f"{seconds * 1000:+.1f} ms"


def cpu_seconds(seconds: float | None) -> str:
    """0.0123; a dash of nothing."""
    return "-" if seconds is None else f"{seconds:.3g}"


def milliseconds(seconds: float | None) -> str:
    """12.3 ms; a dash of nothing."""
    return "-" if seconds is None else f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds * 1000:.0f} ms"
