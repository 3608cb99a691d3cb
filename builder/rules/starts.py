"""Rules about steps of an ensemble that are at work at the same time, one of which refuses its request.

A server whose ensemble scheduler is not mended counts wrongly then. Only what looks at its tensors' content may refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.graph import Graph, cycle, make_graph

# core, pull request 483 of April 2026: by its date in this release at the latest. Not tried.
_MENDED = ("26.05", "2.69.0")


@rule(
    "TK316",
    "warning",
    "step that may refuse before one that begins together with it",
    why="core: ensemble_scheduler.cc, ScheduleSteps (pull request 483): a step that fails while the next of those that "
    "begin together is not handed over yet ends the server with a segmentation fault (seen on 2.51)",
    server="accepts",
)
def refuses_before_another_begins(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Steps are handed over in the order of the config; one whose model is Python may refuse within microseconds."""
    graph = make_graph(entry)
    followers = _followers(graph)
    refusing = _that_may_refuse(entry, graph, catalog)
    for step in sorted(refusing & followers.keys()):
        later = followers[step]
        model, other = entry.step_model(step), entry.step_model(later)
        yield Problem(
            step=step,
            path=("ensemble_scheduling", "step", step),
            found=f"it begins together with step {entry.step_number(later)} ({other})",
            expected=f"{catalog.target.name} ends with a segmentation fault if {model} refuses a request before "
            f"{other} has it",
            fix=_in_turn(model, other) if later in refusing else f"Put its step behind that of {other}",
        )


@rule(
    "TK317",
    "warning",
    "step that may refuse while another is at work",
    why="core: ensemble_scheduler.cc, PrepareSteps: a request that one step refuses while another works on it is never "
    "freed (seen on 2.51: 1.6 MB for 7 s of sound beside a broken picture; the present source counts on)",
    server="accepts",
)
def refuses_beside_another(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Steps of which neither waits for the other, and the model of one looks at what tensors hold. One pair is told."""
    graph = make_graph(entry)
    refusing = _that_may_refuse(entry, graph, catalog)
    if refusing & _followers(graph).keys():
        return  # TK316, whose remedy comes first
    before = graph.before()
    for first, later in combinations(range(len(graph.steps)), 2):
        if refusing.isdisjoint({first, later}) or first in before[later] or later in before[first]:
            continue
        model, other = entry.step_model(first), entry.step_model(later)
        yield Problem(
            step=later,
            path=("ensemble_scheduling", "step", later),
            found=f"it is at work at the same time as step {entry.step_number(first)} ({model})",
            expected=f"{catalog.target.name} keeps the tensors of each request that "
            f"{other if later in refusing else model} refuses meanwhile",
            fix=_in_turn(model, other),
        )
        return


def _that_may_refuse(entry: Entry, graph: Graph, catalog: Catalog) -> set[int]:
    """The steps that may, on a server that minds, of an ensemble whose order is known."""
    is_sound = all(len(one.makers) + one.is_input == 1 for one in graph.tensors.values()) and not cycle(graph)
    if not is_sound or catalog.target.has(_MENDED):
        return set()
    models = [catalog.entries.get(step.get("model_name", "")) for step in graph.steps]
    return {step for step, model in enumerate(models) if model is not None and model.may_refuse}


def _followers(graph: Graph) -> dict[int, int]:
    """For each step with which others begin together, the first of them that is handed over after it."""
    causes = graph.starting()
    found: dict[int, int] = {}
    for first, later in combinations(range(len(causes)), 2):
        if causes[first] == causes[later] or not causes[first].isdisjoint(causes[later]):
            found.setdefault(first, later)
    return found


def _in_turn(first: str | None, then: str | None) -> str:
    return (
        f"Give {then} an optional input that it need not read, and map the last tensor of {first}'s branch to it, so "
        "that they work in turn"
    )
