"""Who makes and who uses each ensemble tensor. From an ensemble's config alone, so from any ensemble.

In: an `Entry` with steps. Out: a `Graph`. No rule is asked here: tensors with two makers or none are as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.catalog import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of an edge: a step, and its model's own name of the tensor there."""

    step: int
    model: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleTensor:
    """An ensemble tensor: its makers (one, if all is well), its users, and whether the caller sends or gets it."""

    name: str
    makers: tuple[End, ...]
    users: tuple[End, ...]
    is_input: bool
    is_output: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The tensors of one ensemble by name, and its steps as its config gives them."""

    name: str
    tensors: Mapping[str, EnsembleTensor]
    steps: tuple[Mapping[str, Any], ...]

    def feeding(self, step: int) -> tuple[int, ...]:
        """The steps whose tensors step `step` reads, in order."""
        names = self.steps[step].get("input_map", {}).values()
        made = (self.tensors[name] for name in names)
        # A tensor that the caller sends is there from the beginning, even if a step writes over it.
        return tuple(sorted({end.step for tensor in made if not tensor.is_input for end in tensor.makers}))

    def before(self) -> tuple[set[int], ...]:
        """For each step, every step that has to end before it begins."""
        feeding = [self.feeding(step) for step in range(len(self.steps))]
        found: list[set[int]] = [set() for _ in feeding]
        for step, before in enumerate(found):
            waiting = [step]
            while waiting:
                new = set(feeding[waiting.pop()]) - before
                before |= new
                waiting += new
        return tuple(found)

    def starting(self) -> tuple[set[int], ...]:
        """For each step, those of which one is the last that it waits for; none if it begins with the request."""
        before = self.before()
        return tuple(
            {one for one in feeding if not any(one in before[other] for other in feeding)}
            for feeding in map(self.feeding, range(len(self.steps)))
        )


def make_graph(ensemble: Entry) -> Graph:
    """The graph of an ensemble."""
    inputs, outputs = ensemble.tensors("input"), ensemble.tensors("output")
    steps = ensemble.ensemble_steps()
    makers: dict[str, list[End]] = {name: [] for name in (*inputs, *outputs)}
    users: dict[str, list[End]] = {name: [] for name in (*inputs, *outputs)}
    for index, step in enumerate(steps):
        for field, ends in (("input_map", users), ("output_map", makers)):
            for key, name in step.get(field, {}).items():
                users.setdefault(name, [])
                makers.setdefault(name, [])
                ends[name].append(End(step=index, model=step.get("model_name", ""), key=key))
    tensors = {
        name: EnsembleTensor(
            name=name,
            makers=tuple(makers[name]),
            users=tuple(users[name]),
            is_input=name in inputs,
            is_output=name in outputs,
        )
        for name in makers
    }
    return Graph(name=ensemble.name, tensors=tensors, steps=steps)


def ordered(feeds: Sequence[Iterable[int]], keys: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Steps after the steps that feed them, ties in the order of `keys`; and the steps that a cycle holds back.

    Args:
        feeds: for each step, the steps that feed it.
        keys: for each step, what decides between steps that are ready.
    """
    waiting = {index: set(before) for index, before in enumerate(feeds)}
    order: list[int] = []
    while ready := [index for index, before in waiting.items() if not before]:
        first = min(ready, key=lambda index: keys[index])
        order.append(first)
        del waiting[first]
        for before in waiting.values():
            before.discard(first)
    return tuple(order), tuple(sorted(waiting, key=lambda index: keys[index]))


def cycle(graph: Graph) -> tuple[str, ...] | None:
    """One cycle as the path through it, tensors and models in turn: loop, join, mid, id, loop. None without one."""
    feeds = [graph.feeding(index) for index in range(len(graph.steps))]
    _, held = ordered(feeds, list(range(len(feeds))))
    if not held:
        return None
    step, seen = held[0], []
    while step not in seen:
        seen.append(step)
        step = next(before for before in feeds[step] if before in held)
    around = [*reversed(seen[seen.index(step) :])]
    first = around.index(min(around))
    around = around[first:] + around[:first]
    path: list[str] = []
    for index, following in zip(around, [*around[1:], around[0]], strict=True):
        made = {name for name in graph.steps[index].get("output_map", {}).values() if not graph.tensors[name].is_input}
        read = graph.steps[following].get("input_map", {}).values()
        path += [graph.steps[index].get("model_name", ""), next(name for name in read if name in made)]
    return (path[-1], *path)
