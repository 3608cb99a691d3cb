"""The same pipeline once for each GPU: copies of what lives on a GPU, everything else shared.

In: a pipeline. Out: one pipeline for each GPU, `assistant` on GPU 0, `assistant_gpu1`... An ensemble cannot be pinned
to a GPU, and instances of one model on several GPUs send a tensor from here to there; so each GPU gets a chain of its
own, and the callers take turns between the entry models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from builder.errors import DeclarationError
from builder.model import Model, thaw
from builder.pipeline import Pipeline, Step


def on_gpus(pipelines: Iterable[Pipeline], count: int) -> tuple[Pipeline, ...]:
    """Each pipeline on GPUs 0 to `count` - 1; as it is for one GPU.

    Raises:
        DeclarationError: a language model spans several GPUs.
    """
    found = tuple(pipelines)
    return found if count == 1 else tuple(chain(one, gpu) for one in found for gpu in range(count))


def chain(pipeline: Pipeline, gpu: int) -> Pipeline:
    """The pipeline with its own copies, on one GPU, of the models that live on one.

    Raises:
        DeclarationError: a language model spans several GPUs.
    """
    names = {one.name: _named(one.name, gpu) for one in pipeline.models() if _kinds(one) & {"KIND_GPU", "KIND_MODEL"}}
    copies = {one.name: _copied(one, gpu, names) for one in pipeline.models() if one.name in names}
    steps = [
        Step(model=copies.get(one.model.name, one.model), input_map=one.input_map, output_map=one.output_map)
        for one in pipeline.steps
    ]
    return Pipeline(
        name=_named(pipeline.name, gpu),
        steps=steps,
        inputs=pipeline.inputs,
        outputs=pipeline.outputs,
        bare_suffix=pipeline.bare_suffix,
        **thaw(pipeline.config),
    )


def _named(name: str, gpu: int) -> str:
    return f"{name}_gpu{gpu}" if gpu else name


def _groups(model: Model) -> list[dict[str, Any]]:
    return list(model.config_for("gpu").get("instance_group", ()))


def _kinds(model: Model) -> set[str]:
    return {str(one.get("kind", "KIND_AUTO")) for one in _groups(model)}


def _copied(model: Model, gpu: int, names: Mapping[str, str]) -> Model:
    """The model on another GPU, under another name; what it says of other copied models says it of their copies."""
    spread = _spread(model)
    if spread > 1:
        raise DeclarationError(
            where=model.name,
            found=f"it spans {spread} GPUs (tensor_parallel_size, pipeline_parallel_size)",
            expected="models that live on one GPU each are needed for a chain on each GPU",
            fix="Build one pipeline, and put the other models beside it on GPUs of their own",
        )
    groups = [
        {**one, "kind": "KIND_GPU", "gpus": [gpu]} if one.get("kind") in ("KIND_GPU", "KIND_MODEL") else one
        for one in _groups(model)
    ]
    config = thaw(model.config)
    for value in config.get("parameters", {}).values():
        if value.get("string_value") in names:
            value["string_value"] = names[value["string_value"]]
    profiles = thaw(model.profiles)
    profiles["gpu"] = {**profiles.get("gpu", {}), "instance_group": groups}
    return replace(model, name=names[model.name], config=config, profiles=profiles)


def _spread(model: Model) -> int:
    told = json.loads(model.texts.get("model.json", "{}"))
    return int(told.get("tensor_parallel_size") or 1) * int(told.get("pipeline_parallel_size") or 1)
