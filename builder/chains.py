"""The same pipeline once for each GPU: copies of what lives on a GPU, everything else shared; or split between GPUs.

In: a pipeline. Out: one pipeline for each GPU, `assistant` on GPU 0, `assistant_gpu1`... An ensemble cannot be pinned
to a GPU, and instances of one model on several GPUs send a tensor from here to there; so each GPU gets a chain of its
own, and the callers take turns between the entry models. Or one pipeline whose language model has GPUs to itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from builder.errors import DeclarationError
from builder.model import Model, thaw
from builder.pipeline import Pipeline, Step


def placed(pipelines: Iterable[Pipeline], *, chains: int = 1, others: int | None = None) -> tuple[Pipeline, ...]:
    """The pipelines on several GPUs: `chains` times each, or with all models but language models on GPU `others`.

    Raises:
        DeclarationError: both are asked for, or a pipeline is not made for it.
    """
    if others is None:
        return on_gpus(pipelines, chains)
    if chains > 1:
        raise DeclarationError(
            where="--others-on",
            found=f"--chains {chains} puts a language model on each GPU",
            expected="one of both is needed",
            fix="Leave one out",
        )
    return others_on(pipelines, others)


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
    return _of_copies(pipeline, _named(pipeline.name, gpu), copies)


def others_on(pipelines: Iterable[Pipeline], gpu: int) -> tuple[Pipeline, ...]:
    """Each pipeline with its models that live on a GPU on this one, but the language models: theirs begin at GPU 0.

    Raises:
        DeclarationError: a language model is on this GPU, too, or there is none.
    """
    return tuple(_apart(one, gpu) for one in pipelines)


def _apart(pipeline: Pipeline, gpu: int) -> Pipeline:
    spreads = {one.name: _spread(one) for one in pipeline.models() if "KIND_MODEL" in _kinds(one)}
    if not spreads:
        raise DeclarationError(
            where=pipeline.name,
            found="it has no language model",
            expected="a language model that has GPUs of its own is what --others-on is for",
            fix="Leave it out",
        )
    for name, spread in spreads.items():
        if spread > gpu:
            raise DeclarationError(
                where=name,
                found=f"it is on GPUs 0 to {spread - 1}",
                expected="another GPU is needed for the other models",
                fix=f"--others-on {spread}",
            )
    moved = {one.name: _moved(one, gpu) for one in pipeline.models() if "KIND_GPU" in _kinds(one)}
    return _of_copies(pipeline, pipeline.name, moved)


def _of_copies(pipeline: Pipeline, name: str, copies: Mapping[str, Model]) -> Pipeline:
    """The pipeline under a name, with other models in place of some."""
    steps = [
        Step(model=copies.get(one.model.name, one.model), input_map=one.input_map, output_map=one.output_map)
        for one in pipeline.steps
    ]
    return Pipeline(
        name=name,
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
            fix=f"Build one pipeline, and put the other models on a GPU of their own: --others-on {spread}",
        )
    config = thaw(model.config)
    for value in config.get("parameters", {}).values():
        if value.get("string_value") in names:
            value["string_value"] = names[value["string_value"]]
    return replace(_moved(model, gpu), name=names[model.name], config=config)


def _moved(model: Model, gpu: int) -> Model:
    """The model with its instances of one GPU, or of the engine's own choice, on this one."""
    groups = [
        {**one, "kind": "KIND_GPU", "gpus": [gpu]} if one.get("kind") in ("KIND_GPU", "KIND_MODEL") else one
        for one in _groups(model)
    ]
    profiles = thaw(model.profiles)
    profiles["gpu"] = {**profiles.get("gpu", {}), "instance_group": groups}
    return replace(model, profiles=profiles)


def _spread(model: Model) -> int:
    told = json.loads(model.texts.get("model.json", "{}"))
    return int(told.get("tensor_parallel_size") or 1) * int(told.get("pipeline_parallel_size") or 1)
