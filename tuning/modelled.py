"""A pipeline as it is served and was measured, as a network; what of it may be turned.

In: an ensemble's config, its models' configs, what was measured. Out: a `Network`, and `Turnable`s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuning.measure import Measured
from tuning.network import Network, Station, steps_of
from tuning.search import Turnable
from tuning.settings import Serving, serving_of
from tuning.times import ServiceTimes

MANY = 64  # requests that a model which answers later works on at once, at most


def network_of(
    pipeline: Mapping[str, Any],
    configs: Mapping[str, Mapping[str, Any]],
    alone: Measured,
    batches: Mapping[str, Measured],
    cores: float,
) -> Network:
    """The pipeline on the CPU of one machine.

    Args:
        pipeline: the ensemble's config, or that of a single model.
        alone: every step, one request after the other.
        batches: models that batch, by batch size.
    """
    steps = steps_of(pipeline)
    stations = {}
    for name in dict.fromkeys(step.model for step in steps):
        serving = serving_of(configs[name])
        if name in alone.later:
            serving = replace(serving, instances=MANY, dynamic=False)
        times = batches[name].times[name] if name in batches else alone.times[name]
        stations[name] = Station(serving=serving, times=on_cores(times, cores))
    return Network(
        stations=stations,
        steps=steps,
        capacity={"cpu": cores},
        before_s=alone.travel_s / 2,
        after_s=alone.travel_s / 2,
        handling_s=alone.handling_s,
    )


def on_cores(times: ServiceTimes, cores: float) -> ServiceTimes:
    """The same, with no more cores than there are: threads that wait for each other may be counted for longer."""
    return replace(times, cores=min(times.cores, cores))


def turnable_models(pipeline: Mapping[str, Any], configs: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    """The steps that put requests together, and whether none of their requests has more than one row."""
    found = {}
    for name, config in configs.items():
        if int(config.get("max_batch_size", 0)) > 1 and "sequence_batching" not in config:
            found[name] = has_single_rows(pipeline, configs, name)
    return found


def has_single_rows(pipeline: Mapping[str, Any], configs: Mapping[str, Mapping[str, Any]], model: str) -> bool:
    """Whether a batching step always gets one row: what feeds it has exactly its dims, or it is asked itself."""
    if "ensemble_scheduling" not in pipeline:
        return False
    steps = pipeline["ensemble_scheduling"]["step"]
    dims = {one["name"]: [int(size) for size in one["dims"]] for one in pipeline.get("input", ())}
    for step in steps:
        declared = {one["name"]: one for one in configs[step["model_name"]].get("output", ())}
        for key, tensor in step["output_map"].items():
            dims[tensor] = [int(size) for size in declared[key]["dims"]]
    wanted = {one["name"]: [int(size) for size in one["dims"]] for one in configs[model].get("input", ())}
    return all(
        len(dims.get(tensor, [])) == len(wanted[key])
        for step in steps
        if step["model_name"] == model
        for key, tensor in step["input_map"].items()
    )


def turned(
    serving: Serving, times: Mapping[int, ServiceTimes], is_single: bool, sizes: Sequence[int], cores: float
) -> Turnable:
    """What may be tried with a model."""
    return Turnable(
        times={threads: on_cores(one, cores) for threads, one in times.items()},
        sizes=[size for size in sizes if size <= max(1, serving.max_batch_size)],
        is_capped=is_single,
        instances=range(1, int(cores) + 1),
    )
