"""Latencies before and after as one SVG: which share of the requests was answered within which time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 340, 52, 44, 16, 32
FONT = 'font-family="sans-serif" font-size="12"'
COLOURS = ("#b45309", "#0f766e")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Measured latencies in seconds, and the median and the 95th percentile that were predicted for them."""

    name: str
    latencies_s: Sequence[float]
    predicted_s: tuple[float, float]


def latency_chart(curves: Sequence[Curve], promise_s: float) -> str:
    """The SVG: a line for each curve, a cross where its median and 95th percentile were predicted, the promise."""
    ends = [sorted(one.latencies_s)[int(0.99 * (len(one.latencies_s) - 1))] for one in curves if one.latencies_s]
    longest = 1.05 * max([promise_s, *ends, *(one.predicted_s[1] for one in curves if one.predicted_s[1] < 1e6)])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_axes(longest),
        _line(_x(promise_s, longest), _y(0), _x(promise_s, longest), _y(1), "#64748b", dashed=True),
        _text(_x(promise_s, longest) + 4, _y(0) - 6, f"{1000 * promise_s:g} ms asked for", "#64748b"),
    ]
    for place, (curve, colour) in enumerate(zip(curves, COLOURS, strict=False)):
        parts += _curve(curve, colour, longest)
        parts.append(_text(WIDTH - RIGHT - 4, _y(0.35) + 18 * place, curve.name, colour, anchor="end"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(longest: float) -> Iterator[str]:
    for share in (0, 0.25, 0.5, 0.75, 0.95, 1):
        yield _line(LEFT, _y(share), WIDTH - RIGHT, _y(share), "#e2e8f0")
        yield _text(LEFT - 6, _y(share) + 4, f"{share:.0%}", "#334155", anchor="end")
    for part in range(6):
        at = longest * part / 5
        yield _text(_x(at, longest), HEIGHT - BOTTOM + 16, f"{1000 * at:.0f} ms", "#334155", anchor="middle")
    yield _text((LEFT + WIDTH) / 2, HEIGHT - 8, "answered within", "#334155", anchor="middle")


def _curve(curve: Curve, colour: str, longest: float) -> Iterator[str]:
    ranked = sorted(curve.latencies_s)
    if ranked:
        steps = range(0, 101)
        points = [(ranked[min(len(ranked) - 1, len(ranked) * step // 100)], step / 100) for step in steps]
        path = " ".join(f"{_x(min(at, longest), longest):.1f},{_y(share):.1f}" for at, share in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for at, share in zip(curve.predicted_s, (0.5, 0.95), strict=True):
        if at <= longest:
            x, y = _x(at, longest), _y(share)
            yield _line(x - 5, y - 5, x + 5, y + 5, colour)
            yield _line(x - 5, y + 5, x + 5, y - 5, colour)


def _x(seconds: float, longest: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * seconds / longest


def _y(share: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dash}/>'


def _text(x: float, y: float, words: str, colour: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'
