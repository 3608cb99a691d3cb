"""Which ensemble tensors come in how many responses: the server's labels, from a graph and its models.

A decoupled step answers one request several times, each time a new iteration of its tensors. Triton labels every
tensor with the decoupled step it descends from and lets a step read tensors of one label only.
"""

from __future__ import annotations

from collections.abc import Mapping

from builder.catalog import Entry
from builder.graph import Graph, make_graph, ordered

CALLER = -1


def is_decoupled(name: str, entries: Mapping[str, Entry], above: tuple[str, ...] = ()) -> bool:
    """Whether a model answers several times: it says so, or it is an ensemble with a step that does."""
    entry = entries.get(name)
    if entry is None or name in above:
        return False
    if not entry.is_ensemble:
        return entry.is_decoupled
    below = (*above, name)
    return any(is_decoupled(step.get("model_name", ""), entries, below) for step in entry.ensemble_steps())


def labels(ensemble: Entry, entries: Mapping[str, Entry]) -> dict[str, int]:
    """For each ensemble tensor the decoupled step it descends from, by index; `CALLER` for none.

    Where a step mixes labels, its own tensors take that of its first input, so that one mistake is found once.
    """
    graph = make_graph(ensemble)
    result = {name: CALLER for name, tensor in graph.tensors.items() if tensor.is_input}
    feeds = [graph.feeding(index) for index in range(len(graph.steps))]
    order, _ = ordered(feeds, list(range(len(feeds))))
    for index in order:
        step = graph.steps[index]
        read = [result.get(name, CALLER) for name in step.get("input_map", {}).values()]
        label = index if is_decoupled(step.get("model_name", ""), entries, (ensemble.name,)) else max(read, default=-1)
        for name in step.get("output_map", {}).values():
            result.setdefault(name, label)
    return result


def decoupled_steps(graph: Graph, entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """Names of the models of the decoupled steps, in order."""
    names = [step.get("model_name", "") for step in graph.steps]
    return tuple(name for name in names if is_decoupled(name, entries, (graph.name,)))
