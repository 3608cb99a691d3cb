"""Models that never run at the same time on one GPU: Triton's rate limiter, by a token that only one can hold.

In: a pipeline and names of its models. Out: the pipeline whose models wait for each other. Two networks that each fill
a GPU finish no sooner side by side, and their tensors need memory twice. A server follows this only with
`--rate-limit=execution_count`, which `starter` gives it where a config asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from builder.errors import DeclarationError
from builder.model import Model, thaw
from builder.pipeline import Pipeline, Step
from builder.tensors import did_you_mean


def taking_turns(pipelines: Iterable[Pipeline], names: Iterable[str]) -> list[Pipeline]:
    """Pipelines whose models of these names run one at a time, in whichever of the pipelines they are.

    Raises:
        DeclarationError: as `one_at_a_time`; a name must be in one of the pipelines at least.
    """
    found, wanted = list(pipelines), list(names)
    for one in found:
        here = {model.name for model in one.models()}
        if set(wanted) - {model.name for other in found for model in other.models()}:
            one_at_a_time(one, wanted)  # says which name is wrong
        mine = [name for name in wanted if name in here]
        found = [one_at_a_time(other, mine) if other is one and mine else other for other in found]
    return found


def one_at_a_time(pipeline: Pipeline, names: Iterable[str], token: str = "gpu") -> Pipeline:
    """The pipeline whose models of these names run one at a time on each GPU.

    Args:
        token: what they wait for; models with different tokens do not wait for each other.

    Raises:
        DeclarationError: no model has a name, or a model's requests go on after it returned, so that nothing is held.
    """
    wanted = list(names)
    models = {one.name: one for one in pipeline.models()}
    for name in wanted:
        if name not in models:
            raise DeclarationError(
                where=pipeline.name,
                found=f"no model of it is called {name}{did_you_mean(name, models)}",
                expected=f"one of {', '.join(models)} is needed",
                fix="Name models of the pipeline",
            )
        if models[name].config.get("model_transaction_policy", {}).get("decoupled"):
            raise DeclarationError(
                where=name,
                found="it is decoupled: its requests go on after it has returned, and the token is given back at once",
                expected="models that compute before they return are needed",
                fix="Leave it out",
            )
    held = {name: _holding(models[name], token) for name in wanted}
    return Pipeline(
        name=pipeline.name,
        steps=[
            Step(model=held.get(one.model.name, one.model), input_map=one.input_map, output_map=one.output_map)
            for one in pipeline.steps
        ],
        inputs=pipeline.inputs,
        outputs=pipeline.outputs,
        bare_suffix=pipeline.bare_suffix,
        **thaw(pipeline.config),
    )


def _holding(model: Model, token: str) -> Model:
    limiter = {"resources": [{"name": token, "count": 1}]}
    groups = [
        {**one, "rate_limiter": limiter} if one.get("kind") == "KIND_GPU" else one
        for one in model.config_for("gpu").get("instance_group", ())
    ]
    profiles = thaw(model.profiles)
    profiles["gpu"] = {**profiles.get("gpu", {}), "instance_group": groups}
    return replace(model, profiles=profiles)
