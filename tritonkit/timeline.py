"""A request's timeline as text, as an SVG, or as a page: one line for each step, its parts in colours.

In: a `Timeline`. Out: text. Parts of a step: gap (the scheduler, since its inputs were there), queue, input (tensors on
their way into the model's process), compute, output, and "answers later" for a model that answers from a thread of its
own.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tritonkit.trace import StepTime, Timeline

# Part of a step -> its letter in text, its colour in a picture.
PARTS = {
    "gap": ("-", "#8c959f"),
    "queue": ("q", "#d4a72c"),
    "input": ("i", "#54aeff"),
    "compute": ("#", "#1a7f37"),
    "output": ("o", "#8250df"),
    "answers later": ("~", "#57ab5a"),
}
WIDTH, ROW, LEFT, RIGHT = 760, 26, 150, 90


def parts_of(step: StepTime) -> Iterator[tuple[str, float, float]]:
    """Name, begin and end of each part of a step, in seconds since the request began; without empty ones."""
    at = step.start_s - step.gap_s
    later = step.rest_s if step.answers_later else 0.0
    lengths = (step.gap_s, step.queue_s, step.input_s, step.compute_s, step.output_s, later)
    for name, length in zip(PARTS, lengths, strict=True):
        if length > 0:
            yield name, at, at + length
        at += length


def as_text(timeline: Timeline, width: int = 60) -> str:
    """Lines for a terminal, in milliseconds."""
    broad = max(len(step.model) for step in timeline.steps)
    heads = "".join(f"{word:>9}" for word in ("starts", "gap", "queue", "input", "compute", "output", "all"))
    lines = [f"{timeline.ensemble}: {_ms(timeline.took_s)} ms in the server", f"{'':{broad}} {'':{width}}{heads}"]
    for step in timeline.steps:
        values = (step.start_s, step.gap_s, step.queue_s, step.input_s, step.compute_s, step.output_s, step.took_s)
        figures = "".join(f"{_ms(value):>9}" for value in values)
        lines.append(f"{step.model:{broad}} {_bar(step, timeline.took_s, width)}{figures}")
    lines.append(f"{'to the answer':{broad}} {'':{width}}{'':9}{_ms(timeline.after_s):>9}")
    lines.append(", ".join(f"{letter} {name}" for name, (letter, _) in PARTS.items()) + "; all in ms")
    return "\n".join(lines)


def _bar(step: StepTime, took_s: float, width: int) -> str:
    """The step's parts as letters, at least one for each."""
    row = [" "] * width
    for name, begin, end in parts_of(step):
        first = min(round(begin / took_s * width), width - 1)
        for at in range(first, min(max(round(end / took_s * width), first + 1), width)):
            row[at] = PARTS[name][0]
    return "".join(row)


def as_svg(timeline: Timeline) -> str:
    """A self-contained picture; each part tells its length when pointed at."""
    height = ROW * (len(timeline.steps) + 2) + 16
    scale = WIDTH / timeline.took_s
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" role="img">',
        "<style>text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #57606a; }</style>",
        f"<title>{escape(timeline.ensemble)}: {_ms(timeline.took_s)} ms in the server</title>",
    ]
    for number in range(5):
        x = LEFT + WIDTH * number / 4
        rows.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{height - ROW - 8}" stroke="#d0d7de"/>')
        rows.append(f'<text x="{x:.1f}" y="14" text-anchor="middle">{_ms(timeline.took_s * number / 4)} ms</text>')
    for number, step in enumerate(timeline.steps):
        y = 24 + ROW * number
        rows.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(step.model)}</text>')
        for name, begin, end in parts_of(step):
            length = max((end - begin) * scale, 0.5)
            rows.append(
                f'<rect x="{LEFT + begin * scale:.1f}" y="{y}" width="{length:.1f}" height="{ROW - 8}" '
                f'fill="{PARTS[name][1]}"><title>{escape(step.model)}, {name}: {_ms(end - begin)} ms</title></rect>'
            )
        rows.append(f'<text x="{LEFT + step.end_s * scale + 6:.1f}" y="{y + 14}">{_ms(step.took_s)} ms</text>')
    for number, (name, (_, colour)) in enumerate(PARTS.items()):
        x = LEFT + 110 * number
        rows.append(f'<rect x="{x}" y="{height - 22}" width="12" height="12" fill="{colour}"/>')
        rows.append(f'<text x="{x + 16}" y="{height - 12}">{name}</text>')
    return "\n".join([*rows, "</svg>"]) + "\n"


def as_page(timeline: Timeline) -> str:
    """The picture, and its numbers as a table, as one HTML page."""
    heads = "".join(f"<th>{word}</th>" for word in ("step", "starts", *list(PARTS)[:5], "all"))
    rows = []
    for step in timeline.steps:
        values = (step.start_s, step.gap_s, step.queue_s, step.input_s, step.compute_s, step.output_s, step.took_s)
        rows.append(f"<tr><td>{escape(step.model)}</td>{''.join(f'<td>{_ms(value)}</td>' for value in values)}</tr>")
    title = f"{escape(timeline.ensemble)}: {_ms(timeline.took_s)} ms in the server"
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 14px ui-sans-serif, system-ui, sans-serif; margin: 2em; }}
td, th {{ padding: 2px 12px; text-align: right; }} td:first-child {{ text-align: left; }}
</style>
<h1>{title}</h1>
{as_svg(timeline)}<p>Milliseconds; {_ms(timeline.after_s)} from the last step's answer to the end.</p>
<table><tr>{heads}</tr>
{chr(10).join(rows)}
</table></html>
"""


def _ms(seconds: float) -> str:
    """Milliseconds, as exact as it means something."""
    value = 1000 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
