"""One self-contained page about a pipeline: its picture, what its tensors cost, the GPUs' memory, what was found.

In: a pipeline and what was thought about it. Out: HTML; no script, nothing from elsewhere, light and dark, printable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from builder.draw import SHADES, draw_pipeline
from builder.findings import Finding
from builder.handover.edges import Edge, totals
from builder.memory.account import HEADROOM_PERCENT, KINDS, GpuAccount, MemoryPlan
from builder.memory.devices import bytes_text
from builder.pipeline import Pipeline

_STYLE = """
  :root { color-scheme: light dark; --ink: #1f2328; --soft: #656d76; --edge: #d0d7de; --page: #ffffff;
    --good: #1a7f37; --fair: #9a6700; --bad: #cf222e; --stream: #0969da; }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6edf3; --soft: #9198a1; --edge: #30363d; --page: #0d1117;
      --good: #3fb950; --fair: #d29922; --bad: #f85149; --stream: #4493f8; }
  }
  body { margin: 0 auto; max-width: 1640px; padding: 16px; background: var(--page); color: var(--ink);
    font: 15px/1.5 ui-sans-serif, system-ui, sans-serif; }
  h1 { font-size: 24px; margin: 8px 0; } h2 { font-size: 18px; margin: 28px 0 8px; }
  p, li { margin: 4px 0; } .soft { color: var(--soft); } .good { color: var(--good); } .fair { color: var(--fair); }
  .bad { color: var(--bad); } .stream { color: var(--stream); }
  .wide { overflow-x: auto; border: 1px solid var(--edge); border-radius: 8px; }
  .wide svg { display: block; }
  @media (min-width: 1000px) { .wide svg { max-width: 100%; height: auto; margin: auto; } }
  table { border-collapse: collapse; width: 100%; font-size: 14px; }
  th, td { text-align: left; vertical-align: top; padding: 5px 10px; border-bottom: 1px solid var(--edge); }
  tr:last-child td { border-bottom: 0; }
  th.n, td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
  td { white-space: nowrap; } td.soft { white-space: normal; min-width: 16em; }
  @media (max-width: 700px) {
    tr { display: flex; flex-wrap: wrap; gap: 2px 14px; padding: 6px 10px; border-bottom: 1px solid var(--edge); }
    td, td.n { border: 0; padding: 0; text-align: left; white-space: normal; overflow-wrap: anywhere; }
    tr:has(th) { display: none; } td.soft { flex-basis: 100%; }
  }
  .bar { display: flex; height: 30px; border: 1px solid var(--edge); border-radius: 6px; overflow: hidden;
    print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .bar i { display: block; min-width: 1px; }
  .key { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0; padding: 0; list-style: none; font-size: 14px; }
  .key b { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px;
    print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .refused { border-left: 4px solid var(--bad); padding: 4px 12px; }
  @media print { body { max-width: none; padding: 0; } .wide { overflow: visible; border: 0; }
    .wide svg { width: 100%; height: auto; } section { break-inside: avoid; } }
"""
COLOURS = {
    "context": "#8c959f",
    "pool": "#bf8700",
    "weights": "#0969da",
    "activations": "#1b7c83",
    "arena": "#57a6a8",
    "graphs": "#8250df",
    "reserved": "#cf222e",
    "cache": "#1a7f37",
}
NUMBERS = ("size", "bytes")  # columns that stand to the right


def pipeline_page(
    pipeline: Pipeline, edges: Sequence[Edge], memory: MemoryPlan | None, findings: Sequence[Finding]
) -> str:
    """The page of a pipeline."""
    svg = draw_pipeline(pipeline, edges=edges, findings=findings)
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(pipeline.name)}</title>",
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{escape(pipeline.name)}</h1>",
            *_summary(edges, memory, findings),
            *(_refused(memory) if memory is not None else ()),
            f'<div class="wide" tabindex="0" aria-label="picture of the pipeline">{svg}</div>',
            *_legend(edges),
            *_found(findings),
            *(_memory(memory) if memory is not None else ()),
            *_handover(edges),
            "</body></html>\n",
        )
    )


def _summary(edges: Sequence[Edge], memory: MemoryPlan | None, findings: Sequence[Finding]) -> Iterator[str]:
    sum_ = totals(edges)
    told = [f"one request moves {bytes_text(sum_.moved)}, {bytes_text(sum_.crossed)} of its copies over the bus"]
    if memory is not None:
        for account in memory.accounts:
            told.append(f"GPU {account.index} ({account.gpu.name}): {_percent(account.used, account)} used")
    errors = sum(one.severity == "error" for one in findings)
    told.append(f"{len(findings)} findings, {errors} of them errors" if findings else "the checks found nothing")
    yield f'<p class="soft">{escape("; ".join(told))}</p>'


def _legend(edges: Sequence[Edge]) -> Iterator[str]:
    used = {SHADES[one.how] for one in edges if one.how in SHADES}
    words = {
        "good": "stays where it is",
        "fair": "one copy more: to the GPU, into a batch, to another GPU",
        "bad": "leaves the GPU for the host",
    }
    if used:
        items = "".join(
            f'<li><b style="background: var(--{shade})"></b>{words[shade]}</li>' for shade in words if shade in used
        )
        yield (
            f'<ul class="key">{items}<li><b style="background: var(--stream)"></b>streamed, dashed</li>'
            "<li>the thicker, the larger; point at a line to read more</li></ul>"
        )


def _found(findings: Sequence[Finding]) -> Iterator[str]:
    if findings:
        styles = {"error": "bad", "warning": "fair", "advice": "stream"}
        items = "".join(
            f'<li><b class="{styles[one.severity]}">{one.severity} {one.code}</b> {escape(one.where)}: '
            f"{escape(one.found)}; {escape(one.expected)}. {escape(one.fix)}.</li>"
            for one in findings
        )
        yield f"<section><h2>Found</h2><ol>{items}</ol></section>"


def _refused(memory: MemoryPlan) -> Iterator[str]:
    """What does not fit, before anything else, and what would."""
    for refusal in memory.refusals:
        yield f'<p class="refused"><b class="bad">Does not fit.</b> {escape(refusal)}</p>'
    if memory.ways:
        ways = "".join(
            f"<li>{escape(way.change)} ({bytes_text(way.fills)} of {bytes_text(way.of)})</li>" for way in memory.ways
        )
        yield f"<p>What would fit:</p><ul>{ways}</ul>"


def _memory(memory: MemoryPlan) -> Iterator[str]:
    for account in memory.accounts:
        gpu = account.gpu
        yield f"<section><h2>GPU {account.index}: {escape(gpu.name)}, {bytes_text(gpu.memory_bytes)}</h2>"
        yield from _bar(account)
        rows = "".join(
            f"<tr><td>{part.kind}</td><td>{escape(part.owner)}</td>"
            f'<td class="n">{"" if part.exact else "~ "}{bytes_text(part.bytes)}</td>'
            f'<td class="soft">{escape(part.why)}</td></tr>'
            for part in account.parts
        )
        yield f"{_table(rows, 'part', 'of', 'size', 'why')}</section>"
    for cache in memory.caches if memory.fits else ():
        counts = ", ".join(f"{count:,.1f} of {length:,}" for length, count in cache.sequences.items())
        yield (
            f"<p>{escape(cache.model)}: {bytes_text(cache.bytes_per_token)} of KV cache a token, "
            f"{cache.tokens:,} tokens in {cache.blocks:,} blocks. Sequences at once, by tokens: {counts}.</p>"
        )
    if memory.settings:
        rows = "".join(
            f"<tr><td>{escape(one.where)}</td><td><code>{escape(one.name)}</code></td>"
            f'<td><code>{escape(one.value)}</code></td><td class="soft">{escape(one.why)}</td></tr>'
            for one in memory.settings
        )
        yield f"<section><h2>What to set</h2>{_table(rows, 'where', 'setting', 'value', 'why')}</section>"
    for note in memory.notes:
        yield f'<p class="soft">Assumed: {escape(note)}</p>'


def _bar(account: GpuAccount) -> Iterator[str]:
    total = max(account.gpu.memory_bytes, account.used)
    sums = {kind: account.sum_of(kind) for kind in KINDS if account.sum_of(kind)}
    cells = "".join(
        f'<i style="width: {size * 100 / total:.2f}%; background: {COLOURS[kind]}" '
        f'title="{kind} {bytes_text(size)}"></i>'
        for kind, size in sums.items()
    )
    keys = "".join(
        f'<li><b style="background: {COLOURS[kind]}"></b>{kind} {bytes_text(size)}</li>' for kind, size in sums.items()
    )
    free = account.gpu.memory_bytes - account.used
    left = f"free {bytes_text(free)}" if free >= 0 else f"{bytes_text(-free)} too many"
    yield f'<div class="bar" role="img" aria-label="memory of GPU {account.index}">{cells}</div>'
    yield f'<ul class="key">{keys}<li>{left}; {HEADROOM_PERCENT} % stay free</li></ul>'


def _handover(edges: Sequence[Edge]) -> Iterator[str]:
    rows = "".join(
        f"<tr><td>{escape(one.tensor)}</td><td>{escape(one.source)} &rarr; {escape(one.target)}</td>"
        f'<td class="n">{bytes_text(one.bytes)}{"?" if one.guessed else ""}</td>'
        f"<td>{'host' if one.place < 0 else f'GPU {one.place}'}</td>"
        f'<td class="{SHADES.get(one.how, "")}">{one.how}</td>'
        f'<td class="soft">{escape(one.why)}{". " + escape(one.better) if one.better else ""}</td></tr>'
        for one in edges
        if one.is_large
    )
    if rows:
        table = _table(rows, "tensor", "way", "bytes", "lies on", "how", "why, and what would help")
        yield f"<section><h2>Hand-over of the large tensors</h2>{table}</section>"


def _table(rows: str, *names: str) -> str:
    head = "".join(f'<th class="n">{name}</th>' if name in NUMBERS else f"<th>{name}</th>" for name in names)
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _percent(size: int, account: GpuAccount) -> str:
    return f"{size * 100 / account.gpu.memory_bytes:.0f} %"
