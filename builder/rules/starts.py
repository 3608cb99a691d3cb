"""Rules about the moment at which steps of an ensemble begin."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.graph import Graph, cycle, make_graph

# core, pull request 483 of April 2026: by its date in this release at the latest.
_MENDED = ("26.05", "2.69.0")


@rule(
    "TK316",
    "warning",
    "steps that begin together, and one that may refuse before the next",
    why="core: ensemble_scheduler.cc, ScheduleSteps (pull request 483): the server ends with a segmentation fault when "
    "a step fails while the next of those that begin together is not handed over yet (seen on 2.51)",
    server="accepts",
)
def refuses_before_the_next(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Steps begin in the order of the config; one whose model is Python may refuse a request within microseconds."""
    if catalog.target.has(_MENDED):
        return
    graph = make_graph(entry)
    if cycle(graph) or any(len(one.makers) + one.is_input != 1 for one in graph.tensors.values()):
        return  # other rules say so
    told = set()
    for first, later in combinations(range(len(graph.steps)), 2):
        if first in told or not _may_refuse(entry, first, catalog) or not _begin_together(graph, first, later):
            continue
        told.add(first)
        model, other = entry.step_model(first), entry.step_model(later)
        if _may_refuse(entry, later, catalog):
            fix = (
                f"Give {other} an optional input that it need not read, and map a tensor of {model} to it, so that "
                "it begins after it"
            )
        else:
            fix = f"Put its step behind that of {other}"
        yield Problem(
            step=first,
            path=("ensemble_scheduling", "step", first),
            found=f"it begins together with step {entry.step_number(later)} ({other})",
            expected=f"{catalog.target.name} ends with a segmentation fault if {model} refuses a request before "
            f"{other} has it",
            fix=fix,
        )


def _begin_together(graph: Graph, first: int, later: int) -> bool:
    first_causes, later_causes = (set(graph.starting(step)) for step in (first, later))
    return first_causes == later_causes or not first_causes.isdisjoint(later_causes)


def _may_refuse(entry: Entry, step: int, catalog: Catalog) -> bool:
    model = catalog.entries.get(entry.step_model(step) or "")
    return model is not None and model.may_refuse
