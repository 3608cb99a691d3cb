"""The ensembles of one pipeline: with every input, and without each useful choice of its optional ones.

An ensemble cannot skip a step, and most steps cannot do without their input. So where a pipeline's optional input is
needed by a step, an ensemble without both is derived when building, by pruning. An ensemble costs no
memory, and the caller picks the one that fits what it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from builder.catalog import Entry
from builder.pipeline import Input, Pipeline

MOST_CHOICES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step of one ensemble: the number it was declared with, its model's name, its maps."""

    number: int
    model: str
    input_map: Mapping[str, str]
    output_map: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One ensemble of a pipeline: what it is called, what it does without, and what is left then."""

    name: str
    left_out: tuple[str, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    steps: tuple[PlannedStep, ...]


def derive_variants(pipeline: Pipeline, entries: Mapping[str, Entry]) -> tuple[Variant, ...]:
    """The ensemble with every input first, then the others, most inputs first.

    Without a choice of inputs there is an ensemble when something is left to return, every input that is there is
    used, and none that the caller always sends falls away.
    """
    base = _base(pipeline)
    choices = deriving_inputs(pipeline, entries)[:MOST_CHOICES]
    variants = [base]
    for size in range(len(choices) - 1, -1, -1):
        for present in combinations(choices, size):
            variant = _without(pipeline, base, [name for name in choices if name not in present], present, entries)
            if variant is not None:
                variants.append(variant)
    return tuple(variants)


def deriving_inputs(pipeline: Pipeline, entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """The optional inputs that some step cannot do without."""
    return tuple(
        one.name
        for one in pipeline.inputs
        if one.optional
        and any(
            name == one.name and not is_optional(step.model.name, key, entries)
            for step in pipeline.steps
            for key, name in step.input_map.items()
        )
    )


def is_optional(model: str, key: str, entries: Mapping[str, Entry]) -> bool:
    """Whether the model can do without its input `key`."""
    return bool(entries[model].tensors("input").get(key, {}).get("optional", False))


def _base(pipeline: Pipeline) -> Variant:
    steps = tuple(
        PlannedStep(number=number, model=step.model.name, input_map=step.input_map, output_map=step.output_map)
        for number, step in enumerate(pipeline.steps)
    )
    return Variant(name=pipeline.name, left_out=(), inputs=pipeline.inputs, outputs=pipeline.outputs, steps=steps)


def _without(
    pipeline: Pipeline, base: Variant, missing: Sequence[str], present: Sequence[str], entries: Mapping[str, Entry]
) -> Variant | None:
    steps, gone = _pruned(base.steps, set(missing), entries)
    outputs = tuple(name for name in pipeline.outputs if name not in gone)
    steps = _needed(steps, base.steps, set(outputs))
    used = {name for step in steps for name in step.input_map.values()}
    inputs = tuple(one for one in pipeline.inputs if one.name in used)
    always = {one.name for one in pipeline.inputs if not one.optional}
    if not outputs or not {*present, *always} <= used:
        return None
    suffix = "_".join(name.lower() for name in present) or pipeline.bare_suffix
    return Variant(
        name=f"{pipeline.name}_{suffix}", left_out=tuple(missing), inputs=inputs, outputs=outputs, steps=steps
    )


def _pruned(
    steps: Sequence[PlannedStep], gone: set[str], entries: Mapping[str, Entry]
) -> tuple[tuple[PlannedStep, ...], set[str]]:
    """The steps that can run without the tensors `gone`, and everything that is gone in the end."""
    kept, before = tuple(steps), -1
    while before != len(gone):
        before = len(gone)
        result = []
        for step in kept:
            lost = {key for key, name in step.input_map.items() if name in gone}
            if any(not is_optional(step.model, key, entries) for key in lost) or lost == set(step.input_map):
                gone = gone | set(step.output_map.values())
                continue
            untold = lost & set(entries[step.model].pass_through)
            gone = gone | {name for key, name in step.output_map.items() if key in untold}
            result.append(
                PlannedStep(
                    number=step.number,
                    model=step.model,
                    input_map={key: name for key, name in step.input_map.items() if key not in lost},
                    output_map={key: name for key, name in step.output_map.items() if key not in untold},
                )
            )
        kept = tuple(result)
    return kept, gone


def _needed(steps: Sequence[PlannedStep], base: Sequence[PlannedStep], outputs: set[str]) -> tuple[PlannedStep, ...]:
    """The steps without those whose tensors only fed what was pruned.

    Tensors that nobody ever used stay, for the rules to find.
    """
    used_before = {name for step in base for name in step.input_map.values()} | outputs
    kept, before = tuple(steps), -1
    while before != sum(len(step.output_map) for step in kept):
        before = sum(len(step.output_map) for step in kept)
        used = {name for step in kept for name in step.input_map.values()} | outputs
        trimmed = (
            PlannedStep(
                number=step.number,
                model=step.model,
                input_map=step.input_map,
                output_map={
                    key: name for key, name in step.output_map.items() if name in used or name not in used_before
                },
            )
            for step in kept
        )
        kept = tuple(step for step in trimmed if step.output_map)
    return kept
