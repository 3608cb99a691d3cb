"""Charts as SVG, to stand in an HTML page: colours are the page's CSS variables, so they follow light and dark.

In: numbers. Out: text. Pure; no script, nothing from elsewhere; every mark tells its numbers when pointed at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from load.words import brief

WIDTH, HEIGHT = 880, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 34
ROWS, ROW = 3, 14  # of the words above a histogram
TOGETHER = 3  # marks nearer to each other share their words
BINS = 48
WIDE = 20  # times from the least to the most, from where on an axis is logarithmic
TICKS = 7
NICE = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """From values to places on the page: value `low` lies at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The place of a value."""
        low, high = self._bent(self.low), self._bent(self.high)
        return self.start + (self._bent(value) - low) / (high - low) * (self.end - self.start)

    def _bent(self, value: float) -> float:
        return math.log10(value) if self.is_log else value

    def ticks(self) -> list[float]:
        """Round values between low and high, a few."""
        if self.is_log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [factor * 10.0**power for power in powers for factor in NICE[:3]]
            found = [value for value in found if self.low <= value <= self.high]
            return found if len(found) <= 2 * TICKS else [value for value in found if f"{value:e}"[0] == "1"]
        rough = (self.high - self.low) / TICKS
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(nice * unit for nice in NICE if nice * unit >= rough)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def histogram(values: Sequence[float], marks: Mapping[str, float], label: Callable[[float], str], title: str) -> str:
    """How often which value: bars, and lines at the marks.

    Args:
        values: at least one; positive.
        label: a value in words.
    """
    array = np.maximum(np.asarray(values, dtype=np.float64), 1e-9)
    low, high = float(array.min()), float(array.max())
    is_log = high / low > WIDE
    low, high = (low * 0.9, high * 1.1) if is_log else (max(0.0, low - 0.05 * high), high * 1.05)
    x = Axis(low=low, high=high, start=LEFT, end=WIDTH - RIGHT, is_log=is_log)
    edges = np.geomspace(low, high, BINS + 1) if is_log else np.linspace(low, high, BINS + 1)
    counts = np.histogram(array, edges)[0]
    y = Axis(low=0, high=float(counts.max()), start=HEIGHT - BOTTOM, end=ROWS * ROW + 6)
    parts = [*_frame(x, y, brief, lambda value: f"{value:,.0f}", whole=True)]
    for count, left, right in zip(counts.tolist(), edges, edges[1:], strict=False):
        if count:
            words = f"{label(left)} to {label(right)}: {count:,} requests"
            parts.append(_bar(x.at(left), x.at(right), y.at(count), y.at(0), "right", words))
    parts += _marks({name: value for name, value in marks.items() if low <= value <= high}, x, label)
    return _svg(parts, title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a chart: its name, its CSS class, and a value for each moment; one that is not finite leaves a gap."""

    name: str
    style: str
    values: Sequence[float]


def lines(
    starts: Sequence[float], length: float, shown: Sequence[Line], label: Callable[[float], str], title: str
) -> str:
    """Values over time; starts: of the moments, in seconds, `length` seconds each."""
    finite = [value for line in shown for value in line.values if math.isfinite(value)]
    x, y = _time_axis(starts, length), Axis(low=0, high=max([*finite, 1e-9]) * 1.12, start=HEIGHT - BOTTOM, end=TOP)
    parts = [*_frame(x, y, brief, brief)]
    for line in shown:
        parts.append(f'<path class="line {line.style}" d="{_path(starts, length, line.values, x, y)}"/>')
        for start, value in zip(starts, line.values, strict=True):
            if math.isfinite(value):
                words = f"{line.name} {label(value)}, {start:g} s to {start + length:g} s"
                place = f'cx="{x.at(start + length / 2):.1f}" cy="{y.at(value):.1f}"'
                parts.append(f'<circle class="dot {line.style}" {place} r="3"><title>{escape(words)}</title></circle>')
    return _svg(parts, title)


def stacks(
    starts: Sequence[float],
    length: float,
    layers: Sequence[Line],
    over: Line,
    label: Callable[[float], str],
    title: str,
) -> str:
    """Bars of layers on each other over time, and a line over them."""
    sums = [sum(values) for values in zip(*(layer.values for layer in layers), strict=True)]
    x = _time_axis(starts, length)
    y = Axis(low=0, high=max([*sums, *over.values, 1e-9]) * 1.12, start=HEIGHT - BOTTOM, end=TOP)
    parts = [*_frame(x, y, brief, lambda value: f"{value:g}")]
    for place, start in enumerate(starts):
        bottom = 0.0
        for layer in layers:
            value = layer.values[place]
            if value:
                words = f"{layer.name} {label(value)}, {start:g} s to {start + length:g} s"
                left, right = x.at(start), x.at(start + length)
                parts.append(_bar(left, right, y.at(bottom + value), y.at(bottom), layer.style, words))
                bottom += value
    parts.append(f'<path class="line {over.style}" d="{_path(starts, length, over.values, x, y)}"/>')
    return _svg(parts, title)


def _marks(marks: Mapping[str, float], x: Axis, label: Callable[[float], str]) -> Iterator[str]:
    """Lines at values, their words above the bars; words of lines at the same place are put together."""
    groups: list[tuple[float, list[str], float]] = []
    for name, value in sorted(marks.items(), key=lambda one: one[1]):
        if groups and x.at(value) - groups[-1][0] < TOGETHER:
            groups[-1][1].append(name)
        else:
            groups.append((x.at(value), [name], value))
    for row, (place, names, value) in enumerate(groups):
        is_right = place > WIDTH - 180
        baseline = 11 + ROW * (row % ROWS)
        yield f'<path class="mark" d="M{place:.1f} {baseline - 9}V{HEIGHT - BOTTOM}"/>'
        yield (
            f'<text class="strong" x="{place + (-4 if is_right else 4):.1f}" y="{baseline}" '
            f'text-anchor="{"end" if is_right else "start"}">{escape(", ".join(names))} {escape(label(value))}</text>'
        )


def _time_axis(starts: Sequence[float], length: float) -> Axis:
    return Axis(low=0, high=starts[-1] + length, start=LEFT, end=WIDTH - RIGHT)


def _path(starts: Sequence[float], length: float, values: Sequence[float], x: Axis, y: Axis) -> str:
    steps, is_drawing = [], False
    for start, value in zip(starts, values, strict=True):
        if math.isfinite(value):
            steps.append(f"{'L' if is_drawing else 'M'}{x.at(start + length / 2):.1f} {y.at(value):.1f}")
        is_drawing = math.isfinite(value)
    return "".join(steps)


def _frame(
    x: Axis, y: Axis, x_label: Callable[[float], str], y_label: Callable[[float], str], whole: bool = False
) -> Iterator[str]:
    for value in y.ticks():
        if not whole or value == round(value):
            yield f'<path class="grid" d="M{LEFT} {y.at(value):.1f}H{WIDTH - RIGHT}"/>'
            yield f'<text x="{LEFT - 8}" y="{y.at(value) + 4:.1f}" text-anchor="end">{escape(y_label(value))}</text>'
    yield f'<path class="axis" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
    for value in x.ticks():
        place = x.at(value)
        side = "end" if place > WIDTH - 40 else "middle"
        yield f'<path class="axis" d="M{place:.1f} {HEIGHT - BOTTOM}v5"/>'
        yield f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 19}" text-anchor="{side}">{escape(x_label(value))}</text>'


def _bar(left: float, right: float, top: float, bottom: float, style: str, words: str) -> str:
    gap = 1 if right - left > 3 else 0
    shape = (
        f'x="{left:.1f}" y="{top:.1f}" width="{max(1, right - left - gap):.1f}" height="{max(0.5, bottom - top):.1f}"'
    )
    return f'<rect class="bar {style}" {shape}><title>{escape(words)}</title></rect>'


def _svg(parts: Sequence[str], title: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
    return "\n".join([head, *parts, "</svg>"])
