"""Command `tritonkit draw`: a pipeline as an SVG, or as a page with hand-over, memory and findings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from builder.commands.asked import Llm, Set, Whisper, Yolo, exports, pipelines_of, problems_told


def draw(
    pipeline: Annotated[str, typer.Argument(help="a shipped pipeline, or path/to/file.py[:name]")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="x.svg, or x.html for a page with all that is known; else an SVG is printed"),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="colour by the hand-over there: L4, 2xH100, 24GiB..., detected")
    ] = None,
    whisper: Whisper = None,
    yolo: Yolo = None,
    llm: Llm = None,
    engine: Annotated[list[str] | None, typer.Option("--engine", help="KEY=VALUE of vLLM's arguments")] = None,
    set_: Set = None,
) -> None:
    """Draw a pipeline: steps, tensors with types and dims, what is streamed, where tensors lie, what was found."""
    from builder.check import check_pipelines
    from builder.commands.plan import devices_of, pairs, pinned_release, value_of, vllm_of
    from builder.draw import draw_pipeline
    from builder.handover import edges_of
    from builder.handover.sizes import sizes_of
    from builder.memory.planning import Ask, plan_memory
    from builder.page import pipeline_page

    ending = out.suffix.lower() if out is not None else ".svg"
    if ending not in (".svg", ".html", ".htm"):
        raise typer.BadParameter(f"{out}: x.svg or x.html is needed", param_hint="--out")
    is_page = ending != ".svg"
    with problems_told():
        found = pipelines_of([pipeline], whisper, yolo, llm, set_)[0]
        plan, findings = check_pipelines([found], pinned_release() if gpu else "embedded")
        catalog = plan.catalog("gpu" if gpu else "cpu")
        edges = edges_of(catalog.entries[found.name], catalog, sizes_of(plan.models), embedded=not gpu)
        memory = None
        if gpu:
            ask = Ask(
                devices=devices_of(gpu),
                version=vllm_of(plan.target.container),
                arguments={key: value_of(value) for key, value in pairs(engine, "--engine")},
            )
            memory = plan_memory(plan, ask, exports())
    if is_page:
        text = pipeline_page(found, edges, memory, findings)
    else:
        text = draw_pipeline(found, edges=edges if gpu else (), findings=findings)
    if out is None:
        print(text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
