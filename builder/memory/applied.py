"""A plan's settings, put into the models: what a repository for one GPU says that one for any does not.

In: a `Plan` and the `MemoryPlan` of it. Out: the `Plan` with the engine's arguments and the limits of ONNX Runtime's
arenas filled in. Flags of the server and of docker stand in no model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from builder.backends.accelerators import with_accelerator
from builder.backends.vllm import limits_of
from builder.memory.account import MemoryPlan
from builder.model import Model, thaw
from builder.plan import Plan

_ARGUMENTS: dict[str, Callable[[str], object]] = {
    "kv_cache_memory_bytes": int,
    "max_model_len": int,
    "gpu_memory_utilization": float,
    "dtype": str,
}


def applied(plan: Plan, memory: MemoryPlan, arguments: Mapping[str, object]) -> Plan:
    """The plan for the GPUs of `memory`; `arguments` are those of every engine that it was made with."""
    by_model: dict[str, dict[str, str]] = {}
    for one in memory.settings:
        by_model.setdefault(one.where, {})[one.name] = one.value
    return replace(plan, models=tuple(_set(model, by_model.get(model.name, {}), arguments) for model in plan.models))


def _set(model: Model, values: Mapping[str, str], arguments: Mapping[str, object]) -> Model:
    if "model.json" in model.texts:
        told = json.loads(model.texts["model.json"])
        told |= {name: value for name, value in arguments.items() if value is not None}
        told |= {name: kind(values[name]) for name, kind in _ARGUMENTS.items() if name in values}
        parameters = {name: {"string_value": value} for name, value in limits_of(told).items()}
        config = thaw(model.config)
        if parameters:
            config["parameters"] = {**config.get("parameters", {}), **parameters}
        return replace(model, config=config, texts={**model.texts, "model.json": json.dumps(told, indent=2) + "\n"})
    limits = {name: values[name] for name in ("gpu_mem_limit", "arena_extend_strategy") if name in values}
    if not limits:
        return model
    gpu = thaw(model.profiles.get("gpu", {}))
    base = thaw(model.config.get("optimization", {}))
    gpu["optimization"] = with_accelerator({**base, **gpu.get("optimization", {})}, "cuda", limits)
    return replace(model, profiles={**thaw(model.profiles), "gpu": gpu})
