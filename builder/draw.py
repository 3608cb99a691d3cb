"""A pipeline as a picture: one self-contained SVG, for light and dark pages.

In: a pipeline. Out: the text of an SVG. Steps are boxes in columns, each after all that feed it; the lines between
them carry the ensemble tensor's name, data type and dims. What a decoupled step streams is dashed and coloured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from builder.catalog import Catalog, Entry
from builder.decoupling import CALLER, is_decoupled, labels
from builder.graph import Graph, make_graph
from builder.pipeline import Pipeline
from builder.plan import make_plan
from builder.tensors import dims_text

COLUMN, ROW, PORT, BOX, MARGIN, HEAD = 226, 34, 14, 176, 20, 44

_STYLE = """
  svg { --ink: #1f2328; --soft: #656d76; --line: #8c959f; --box: #f6f8fa; --stream: #0969da; --page: #ffffff; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9198a1; --line: #6e7681; --box: #161b22; --stream: #4493f8; --page: #0d1117; }
  }
  text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: var(--ink); }
  .name { font-weight: 600; }
  .soft { font-size: 11px; fill: var(--soft); }
  .page { fill: var(--page); }
  .box { fill: var(--box); stroke: var(--line); }
  .end { fill: none; stroke: var(--line); stroke-dasharray: 2 3; }
  .line { fill: none; stroke: var(--line); }
  .streamed { stroke: var(--stream); stroke-dasharray: 6 3; }
  text.streamed { fill: var(--stream); stroke: none; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A step, or one end of the pipeline, with the tensors on its left and on its right, top to bottom."""

    title: str
    remark: str
    x: int
    y: int
    left: tuple[str, ...]
    right: tuple[str, ...]
    style: str = "box"

    @property
    def height(self) -> int:
        """Pixels from its upper to its lower edge."""
        rows = ROW * len(self.right) if self.style == "box" else ROW * len(self.left + self.right)
        return HEAD + max(rows, PORT * len(self.left), ROW)

    def port(self, tensor: str, side: str) -> tuple[int, int]:
        """Where the line of a tensor ends: on the "left" or the "right" edge."""
        if side == "right":
            return self.x + BOX, self.y + HEAD + ROW * self.right.index(tensor) + ROW // 2
        row = PORT if self.style == "box" else ROW
        return self.x, self.y + HEAD + row * self.left.index(tensor) + row // 2


def draw_pipeline(pipeline: Pipeline) -> str:
    """The SVG of a pipeline, with every input it can have."""
    catalog = make_plan([pipeline]).catalog("cpu")
    entry = catalog.entries[pipeline.name]
    graph = make_graph(entry)
    boxes = _boxes(entry, graph, catalog)
    told = {name: _tensor_text(name, entry, graph, catalog) for name in graph.tensors}
    streamed = {name for name, label in labels(entry, catalog.entries).items() if label != CALLER}
    width = max(box.x for box in boxes.values()) + BOX + MARGIN
    height = max(box.y + box.height for box in boxes.values()) + MARGIN
    lines = [line for name in graph.tensors for line in _lines(name, graph, boxes, name in streamed)]
    shapes = [shape for box in boxes.values() for shape in _shapes(box, told, streamed)]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"<title>{escape(pipeline.name)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
            *lines,
            *shapes,
            "</svg>\n",
        )
    )


def _boxes(entry: Entry, graph: Graph, catalog: Catalog) -> dict[int, Box]:
    """The boxes by step; -1 is the caller's sending end, -2 its receiving one."""
    columns = _columns(graph)
    last = max(columns.values(), default=0) + 1
    inputs = tuple(name for name, tensor in graph.tensors.items() if tensor.is_input)
    outputs = tuple(name for name, tensor in graph.tensors.items() if tensor.is_output)
    boxes = {-1: Box(title="caller", remark="sends", x=MARGIN, y=MARGIN, left=(), right=inputs, style="end")}
    free = {column: MARGIN for column in range(last + 1)}
    for index in sorted(columns, key=lambda index: (columns[index], index)):
        step = graph.steps[index]
        name = step.get("model_name", "")
        box = Box(
            title=name,
            remark=_remark(catalog.entries.get(name), is_decoupled(name, catalog.entries)),
            x=MARGIN + COLUMN * columns[index],
            y=free[columns[index]],
            left=_in_order(step, "input", catalog),
            right=_in_order(step, "output", catalog),
        )
        boxes[index] = box
        free[columns[index]] += box.height + MARGIN
    boxes[-2] = Box(
        title="caller", remark="gets", x=MARGIN + COLUMN * last, y=MARGIN, left=outputs, right=(), style="end"
    )
    return boxes


def _in_order(step: Mapping[str, Any], side: str, catalog: Catalog) -> tuple[str, ...]:
    """The ensemble tensors on one side of a step, in the order in which its model declares its own."""
    model = catalog.entries.get(step.get("model_name", ""))
    declared = list(model.tensors(side)) if model is not None else []
    keys = sorted(
        step.get(f"{side}_map", {}), key=lambda key: declared.index(key) if key in declared else len(declared)
    )
    return tuple(dict.fromkeys(step[f"{side}_map"][key] for key in keys))


def _columns(graph: Graph) -> dict[int, int]:
    columns: dict[int, int] = {}
    for index in range(len(graph.steps)):
        columns[index] = 1 + max((columns.get(before, 0) for before in graph.feeding(index)), default=0)
    return columns


def _remark(model: Entry | None, streams: bool) -> str:
    if model is None:
        return "unknown"
    backend = model.config.get("backend") or model.config.get("platform", "")
    batch = f", batches of {model.config['max_batch_size']}" if model.is_batching else ""
    return f"{backend}{batch}{', decoupled' if streams else ''}"


def _tensor_text(name: str, entry: Entry, graph: Graph, catalog: Catalog) -> str:
    """`fp32 [-1]`, with a ? where the caller may leave it out."""
    tensor = graph.tensors[name]
    ends = [("output", end) for end in tensor.makers] + [("input", end) for end in tensor.users]
    found = [
        catalog.entries[end.model].tensors(side).get(end.key) for side, end in ends if end.model in catalog.entries
    ]
    declared = next((one for one in found if one), {})
    optional = entry.tensors("input").get(name, {}).get("optional", False)
    kind = str(declared.get("data_type", "?")).removeprefix("TYPE_").lower()
    return f"{kind} {dims_text(declared.get('dims', ()))}{' optional' if optional else ''}"


def _lines(name: str, graph: Graph, boxes: Mapping[int, Box], streamed: bool) -> Iterator[str]:
    tensor = graph.tensors[name]
    sources = [-1] if tensor.is_input else [end.step for end in tensor.makers]
    targets = [end.step for end in tensor.users] + ([-2] if tensor.is_output else [])
    style = "line streamed" if streamed else "line"
    for source in sources:
        for target in dict.fromkeys(targets):
            x1, y1 = boxes[source].port(name, "right")
            x2, y2 = boxes[target].port(name, "left")
            bend = min(60, max(20, (x2 - x1) // 2))
            yield f'<path class="{style}" d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"/>'


def _shapes(box: Box, told: Mapping[str, str], streamed: set[str]) -> Iterator[str]:
    yield f'<rect class="{box.style}" x="{box.x}" y="{box.y}" width="{BOX}" height="{box.height}" rx="6"/>'
    yield f'<text class="name" x="{box.x + 10}" y="{box.y + 18}">{escape(box.title)}</text>'
    yield f'<text class="soft" x="{box.x + 10}" y="{box.y + 33}">{escape(box.remark)}</text>'
    side, names = ("right", box.right) if box.right else ("left", box.left)
    place = f'x="{box.x + BOX - 10}" text-anchor="end"' if side == "right" else f'x="{box.x + 10}"'
    for name in names:
        _, y = box.port(name, side)
        style = ' class="streamed"' if name in streamed else ""
        yield f'<text{style} {place} y="{y - 2}">{escape(name)}</text>'
        yield f'<text class="soft" {place} y="{y + 11}">{escape(told[name])}</text>'
