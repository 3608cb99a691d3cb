"""A pipeline as a picture: one self-contained SVG, for light and dark pages.

In: a pipeline. Out: the text of an SVG. Steps are boxes in columns, each after all that feed it; the lines between
them carry the ensemble tensor's name, data type and dims. What a decoupled step streams is dashed and coloured.

With the hand-over's edges, a line's colour says what becomes of its tensor, its width how large it is. With findings,
each box that has some wears their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from builder.catalog import Catalog, Entry
from builder.decoupling import CALLER, is_decoupled, labels
from builder.findings import Finding
from builder.graph import Graph, make_graph
from builder.handover.edges import Edge
from builder.handover.places import gpus_of, instances_of
from builder.pipeline import Pipeline
from builder.plan import make_plan
from builder.tensors import dims_text

COLUMN, ROW, PORT, BOX, MARGIN, HEAD = 226, 34, 14, 176, 20, 44

_STYLE = """
  svg { --ink: #1f2328; --soft: #656d76; --line: #8c959f; --box: #f6f8fa; --stream: #0969da; --page: #ffffff;
    --good: #1a7f37; --fair: #9a6700; --bad: #cf222e; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9198a1; --line: #6e7681; --box: #161b22; --stream: #4493f8; --page: #0d1117;
      --good: #3fb950; --fair: #d29922; --bad: #f85149; }
  }
  svg text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: var(--ink); }
  svg .name { font-weight: 600; }
  svg .soft { font-size: 11px; fill: var(--soft); }
  svg .page { fill: var(--page); }
  svg .box { fill: var(--box); stroke: var(--line); }
  svg .end { fill: none; stroke: var(--line); stroke-dasharray: 2 3; }
  svg .line { fill: none; stroke: var(--line); }
  svg .good { stroke: var(--good); }
  svg .fair { stroke: var(--fair); }
  svg .bad { stroke: var(--bad); }
  svg .badge { fill: var(--bad); stroke: var(--page); }
  svg .badge.warning { fill: var(--fair); }
  svg .badge.advice { fill: var(--stream); }
  svg .number { font-size: 11px; font-weight: 600; fill: var(--page); text-anchor: middle; }
  svg .streamed { stroke: var(--stream); stroke-dasharray: 6 3; }
  svg text.streamed { fill: var(--stream); stroke: none; }
"""

# What becomes of a tensor, as a colour; anything else keeps the plain one.
SHADES = {
    "pointer": "good",
    "device copy": "good",
    "gather": "fair",
    "upload": "fair",
    "peer copy": "fair",
    "host bounce": "bad",
}
_WIDTHS = ((10 << 20, 6.0), (1 << 20, 4.0), (1 << 16, 2.5))


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


def draw_pipeline(pipeline: Pipeline, *, edges: Sequence[Edge] = (), findings: Sequence[Finding] = ()) -> str:
    """The SVG of a pipeline, with every input it can have.

    Args:
        edges: the hand-over of its ensemble, for colours, widths and bytes.
        findings: what the rules found, to be pinned to the steps; the first has number 1.
    """
    plan = make_plan([pipeline])
    catalog = plan.catalog("gpu" if any(one.place >= 0 for one in edges) else "cpu")
    entry = catalog.entries[pipeline.name]
    graph = make_graph(entry)
    boxes = _boxes(entry, graph, catalog)
    sizes = {one.tensor: one.bytes for one in edges}
    told = {name: _tensor_text(name, entry, graph, catalog, sizes.get(name)) for name in graph.tensors}
    streamed = {name for name, label in labels(entry, catalog.entries).items() if label != CALLER}
    width = max(box.x for box in boxes.values()) + BOX + MARGIN
    height = max(box.y + box.height for box in boxes.values()) + MARGIN
    lines = [line for name in graph.tensors for line in _lines(name, graph, boxes, name in streamed, edges)]
    shapes = [shape for box in boxes.values() for shape in _shapes(box, told, streamed)]
    pins = [pin for index, box in boxes.items() for pin in _pins(index, box, entry, findings)]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"<title>{escape(pipeline.name)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
            *lines,
            *shapes,
            *pins,
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
    """Backend, batch, instances on GPUs (or several on the host), and whether it streams."""
    if model is None:
        return "unknown"
    words = [str(model.config.get("backend") or model.config.get("platform", ""))]
    words += [f"batch {model.config['max_batch_size']}"] if model.is_batching else []
    on, count = dict.fromkeys(gpus_of(model.config)), instances_of(model.config)
    words += [f"GPU {', '.join(str(gpu) for gpu in on)}"] if on else []
    words += [f"{count} instances"] if count > 1 else []
    words += ["decoupled"] if streams else []
    return ", ".join(words)


def _tensor_text(name: str, entry: Entry, graph: Graph, catalog: Catalog, size: int | None) -> str:
    """`fp32 [-1]`, whether the caller may leave it out, and its bytes where they are known and many."""
    tensor = graph.tensors[name]
    ends = [("output", end) for end in tensor.makers] + [("input", end) for end in tensor.users]
    found = [
        catalog.entries[end.model].tensors(side).get(end.key) for side, end in ends if end.model in catalog.entries
    ]
    declared = next((one for one in found if one), {})
    optional = entry.tensors("input").get(name, {}).get("optional", False)
    kind = str(declared.get("data_type", "?")).removeprefix("TYPE_").lower()
    many = f", {size / (1 << 20):.1f} MiB" if size and size >= _WIDTHS[-1][0] else ""
    return f"{kind} {dims_text(declared.get('dims', ()))}{' optional' if optional else ''}{many}"


def _lines(name: str, graph: Graph, boxes: Mapping[int, Box], streamed: bool, edges: Sequence[Edge]) -> Iterator[str]:
    tensor = graph.tensors[name]
    sources = [-1] if tensor.is_input else [end.step for end in tensor.makers]
    targets = [(end.step, end.model) for end in tensor.users] + ([(-2, "caller")] if tensor.is_output else [])
    for source in sources:
        for target, model in dict.fromkeys(targets):
            x1, y1 = boxes[source].port(name, "right")
            x2, y2 = boxes[target].port(name, "left")
            bend = min(60, max(20, (x2 - x1) // 2))
            edge = next((one for one in edges if one.tensor == name and one.target == model), None)
            style, told = _looks(edge, streamed)
            yield f'<path {style} d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}">{told}</path>'


def _looks(edge: Edge | None, streamed: bool) -> tuple[str, str]:
    """A line's attributes, and what is told where one points at it."""
    words = ["line", *(["streamed"] if streamed else [])]
    if edge is None:
        return f'class="{" ".join(words)}"', ""
    words += [SHADES[edge.how]] if edge.how in SHADES and not streamed else []
    width = next((width for least, width in _WIDTHS if edge.bytes >= least), 1.0)
    told = f"{edge.tensor}: {edge.bytes:,} bytes, {edge.how}: {edge.why}{'. ' + edge.better if edge.better else ''}"
    return f'class="{" ".join(words)}" stroke-width="{width}"', f"<title>{escape(told)}</title>"


def _pins(index: int, box: Box, entry: Entry, findings: Sequence[Finding]) -> Iterator[str]:
    """The numbers of the findings about a box, at its upper right corner."""
    about = [(number, one) for number, one in enumerate(findings, 1) if _is_about(index, box, entry, one)]
    for place, (number, one) in enumerate(about):
        x, told = box.x + BOX - 4 - 20 * place, escape(str(one))
        yield f'<circle class="badge {one.severity}" cx="{x}" cy="{box.y}" r="9"><title>{told}</title></circle>'
        yield f'<text class="number" x="{x}" y="{box.y + 4}">{number}</text>'


def _is_about(index: int, box: Box, entry: Entry, finding: Finding) -> bool:
    """Whether a finding belongs at a box: of its step, of its model; at the caller what belongs to no step."""
    if finding.model == entry.name and finding.step is not None:
        return index >= 0 and finding.step == entry.step_number(index)
    models = {step.get("model_name") for step in entry.ensemble_steps()}
    if finding.model in models:
        return index >= 0 and box.title == finding.model
    return index == -1


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
