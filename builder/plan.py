"""The plan: which models and ensembles a repository holds, steps in order, tensors with types and dims.

In: pipelines. Out: a `Plan`; the rules are asked about it elsewhere (`check.py`). What a plan *is* stands first, how
the ensembles of one pipeline are derived in `variants.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from builder.catalog import Catalog, Entry, Target, entry, target
from builder.decoupling import is_decoupled
from builder.graph import ordered
from builder.model import PROFILES, Model, thaw
from builder.pipeline import Pipeline
from builder.tensors import full_dims
from builder.variants import PlannedStep, Variant, derive_variants


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """One ensemble to write: its config, the pipeline it comes from, and the inputs it does without."""

    config: Mapping[str, Any]
    pipeline: str
    left_out: tuple[str, ...]
    steps: tuple[int, ...]

    @property
    def name(self) -> str:
        """The ensemble's name."""
        return str(self.config["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a repository will hold.

    Attributes:
        models: every model, by name.
        ensembles: every ensemble, a pipeline's own one before the ones derived from it.
        pipelines: by name of a pipeline, the names of its ensembles and models.
        target: the server it is for.
    """

    pipelines: Mapping[str, tuple[str, ...]]
    models: tuple[Model, ...]
    ensembles: tuple[Ensemble, ...]
    target: Target

    def catalog(self, profile: str) -> Catalog:
        """Everything as the rules look at it, for one profile."""
        entries = model_entries(self.models, profile)
        for one in self.ensembles:
            entries[one.name] = entry(one.name, one.config, versions=(1,), steps=one.steps, inferred=True)
        return Catalog(entries=entries, target=self.target, profile=profile)


def make_plan(pipelines: Sequence[Pipeline], release: str = "embedded") -> Plan:
    """The plan of some pipelines, in the order of their names.

    Args:
        pipelines: what to plan for; of models with one name the first is taken.
        release: the server it is for, a container tag or `embedded`.
    """
    by_name = {pipeline.name: pipeline for pipeline in sorted(pipelines, key=lambda pipeline: pipeline.name)}
    kept = target(release)
    models = {model.name: _for(kept, model) for pipeline in by_name.values() for model in pipeline.models()}
    entries = model_entries(models.values(), PROFILES[0])
    ensembles = [
        _ensemble(pipeline, variant, entries)
        for pipeline in by_name.values()
        for variant in derive_variants(pipeline, entries)
    ]
    return Plan(
        pipelines={
            name: (
                *(one.name for one in ensembles if one.pipeline == name),
                *sorted(model.name for model in pipeline.models()),
            )
            for name, pipeline in by_name.items()
        },
        models=tuple(models[name] for name in sorted(models)),
        ensembles=tuple(ensembles),
        target=kept,
    )


def _for(kept: Target, model: Model) -> Model:
    """The model as it makes sense on a server: on the host, where its neighbours take nothing on the GPU anyway."""
    if kept.image != "stock-vllm" or not model.serves_neighbours:
        return model
    return replace(model, profiles={name: part for name, part in thaw(model.profiles).items() if name != "gpu"})


def model_entries(models: Iterable[Model], profile: str) -> dict[str, Entry]:
    """The models as the rules look at them."""
    return {
        model.name: entry(
            model.name, model.config_for(profile), versions=(model.version,), pass_through=model.pass_through
        )
        for model in models
    }


def _ensemble(pipeline: Pipeline, variant: Variant, entries: Mapping[str, Entry]) -> Ensemble:
    steps = _in_order(variant.steps, entries)
    batching = _batch_size(pipeline) > 0
    config: dict[str, Any] = {
        "name": variant.name,
        "platform": "ensemble",
        "input": [_input(one.name, one.optional, steps, entries, batching) for one in variant.inputs],
        "output": [_output(name, steps, entries, batching) for name in variant.outputs],
        "ensemble_scheduling": {
            "step": [
                {
                    "model_name": step.model,
                    "model_version": -1,
                    "input_map": dict(sorted(step.input_map.items())),
                    "output_map": dict(sorted(step.output_map.items())),
                }
                for step in steps
            ]
        },
        **thaw(pipeline.config),
    }
    if any(is_decoupled(step.model, entries) for step in steps):
        config["model_transaction_policy"] = {"decoupled": True}
    return Ensemble(
        config=config,
        pipeline=pipeline.name,
        left_out=variant.left_out,
        steps=tuple(step.number for step in steps),
    )


def _batch_size(pipeline: Pipeline) -> int:
    size = pipeline.config.get("max_batch_size", 0)
    return size if isinstance(size, int) else 0


def _in_order(steps: Sequence[PlannedStep], entries: Mapping[str, Entry]) -> tuple[PlannedStep, ...]:
    """The steps after what feeds them; of those that begin together, the ones that may refuse last (rule TK316)."""
    made: dict[str, list[int]] = {}
    for index, step in enumerate(steps):
        for name in step.output_map.values():
            made.setdefault(name, []).append(index)
    feeds = [{maker for name in step.input_map.values() for maker in made.get(name, ())} for step in steps]
    keys = [
        (entries[step.model].may_refuse, step.model, sorted(step.input_map.items()), sorted(step.output_map.items()))
        for step in steps
    ]
    order, held = ordered(feeds, keys)
    return tuple(steps[index] for index in (*order, *held))


def _input(
    name: str, may_be_left_out: bool, steps: Sequence[PlannedStep], entries: Mapping[str, Entry], batching: bool
) -> dict[str, Any]:
    ends = [
        (entries[step.model], entries[step.model].tensors("input")[key])
        for step in steps
        for key, tensor in step.input_map.items()
        if tensor == name and key in entries[step.model].tensors("input")
    ]
    result = {"name": name, **_seen(ends, batching)}
    if may_be_left_out and ends and all(declared.get("optional", False) for _, declared in ends):
        result["optional"] = True
    return result


def _output(name: str, steps: Sequence[PlannedStep], entries: Mapping[str, Entry], batching: bool) -> dict[str, Any]:
    ends = [
        (entries[step.model], entries[step.model].tensors("output")[key])
        for step in steps
        for key, tensor in step.output_map.items()
        if tensor == name and key in entries[step.model].tensors("output")
    ]
    return {"name": name, **_seen(ends[:1], batching)}


def _seen(ends: Sequence[tuple[Entry, Mapping[str, Any]]], batching: bool) -> dict[str, Any]:
    """Type and dims of an ensemble tensor whose ends are these: of the first, sizes that vary taken from the rest."""
    types = [declared["data_type"] for _, declared in ends if "data_type" in declared]
    dims = [_dims(one, declared["dims"], batching) for one, declared in ends if declared.get("dims")]
    result: dict[str, Any] = {}
    if types:
        result["data_type"] = types[0]
    if dims:
        same_rank = [one for one in dims if len(one) == len(dims[0])]
        result["dims"] = [next((size for size in sizes if size != -1), -1) for sizes in zip(*same_rank, strict=True)]
    return result


def _dims(one: Entry, dims: Sequence[int], batching: bool) -> tuple[int, ...]:
    full = full_dims(dims, batching=one.is_batching)
    return full[1:] if batching and len(full) > 1 and full[0] == -1 else full
