"""What is simulated: models with their queues, joined by the steps of an ensemble, on processors that they share.

In: an ensemble's config, its models' `Serving` and `ServiceTimes`. Out: a `Network`; `simulate.py` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuning.settings import Serving
from tuning.times import ServiceTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a request: the model it runs on, and the steps it waits for, by their place."""

    model: str
    after: tuple[int, ...] = ()
    rows: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A model: how it is served, how long it takes, and which processors it runs on."""

    serving: Serving
    times: ServiceTimes
    runs_on: str = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Everything that a request meets.

    Attributes:
        stations: by name of the model.
        steps: of one request, in an order in which each comes after those it waits for.
        capacity: by name of processors, how many cores they have; a GPU has 1.
        before_s, after_s: how long a request is under way before its first step and after its last, however much
            else is under way.
        handling_s: processor time of one core that sending, receiving and handing over one request takes, half of it
            before and half after; the others' requests wait for it.
        crossing_s: what each step of an ensemble costs besides its execution.
    """

    stations: Mapping[str, Station]
    steps: tuple[Step, ...]
    capacity: Mapping[str, float] = field(default_factory=lambda: {"cpu": 2.0})
    before_s: float = 0.0
    after_s: float = 0.0
    handling_s: float = 0.0
    crossing_s: float = 0.0


def longest_way_s(steps: Sequence[Step], took_s: Mapping[str, float]) -> float:
    """From the first step's begin to the last one's end, where each model takes so long and nothing in between."""
    ends: list[float] = []
    for step in steps:
        ends.append(took_s.get(step.model, 0.0) + max((ends[place] for place in step.after), default=0.0))
    return max(ends)


def steps_of(config: Mapping[str, Any]) -> tuple[Step, ...]:
    """The steps of an ensemble, each with those whose tensors it reads; of a single model, itself."""
    if "ensemble_scheduling" not in config:
        return (Step(model=config["name"]),)
    steps = config["ensemble_scheduling"]["step"]
    makers = {tensor: place for place, step in enumerate(steps) for tensor in step["output_map"].values()}
    return tuple(
        Step(
            model=step["model_name"],
            after=tuple(sorted({makers[tensor] for tensor in step["input_map"].values() if tensor in makers})),
        )
        for step in steps
    )
