"""Language models: our own vLLM Python-backend model, or any other model that runs vLLM's engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.backends.python import python_model
from builder.model import Artifact, Model
from builder.served import code_of

INPUTS = (
    "MESSAGES? STRING [1]",
    "PROMPT? STRING [1]",
    "SAMPLING_PARAMETERS? STRING [1]",
    "TEMPLATE_ARGUMENTS? STRING [1]",
    "LIFELINE? STRING [1]",
)
OUTPUTS = (
    "TEXT STRING [1]",
    "LOGPROBS STRING [1]",
    "FINISH_REASON STRING [1]",
    "PROMPT_TOKENS INT32 [1]",
    "COMPLETION_TOKENS INT32 [1]",
)


def vllm(
    name: str,
    *,
    engine: Mapping[str, Any],
    code: str | Path | None = None,
    checkpoint: str | Path | None = None,
    pass_through: Sequence[str] = (),
    **config: Any,
) -> Model:
    """A decoupled model with vLLM's engine, whose first response carries the tensors it passes through.

    Triton lets no ensemble return a streamed tensor beside another one, so what the caller shall get besides the
    text goes through the model (design, decision 3).

    Args:
        engine: the engine's arguments by vLLM's names (AsyncEngineArgs); they become `model.json`.
        code: the folder with its `model.py`; that of the shipped model `llm` if none is given.
        checkpoint: a folder to link as `checkpoint/` in the version folder; relative to the folder of exports.
        pass_through: names of string tensors that come in and go out.
        config: any other part of ModelConfig, by Triton's names.
    """
    told = {**limits_of(engine), **config.pop("parameters", {})}
    more: dict[str, Any] = {"parameters": told} if told else {}
    passed = [f"{tensor}? STRING [1]" for tensor in pass_through]
    return python_model(
        name,
        code=code_of("llm") if code is None else Path(code).absolute(),
        input=[*INPUTS, *passed],
        output=[*(text.replace("?", "") for text in passed), *OUTPUTS],
        artifacts=() if checkpoint is None else (Artifact(source=Path(checkpoint), target="checkpoint"),),
        texts={"model.json": json.dumps(dict(engine), indent=2) + "\n"},
        profiles={"gpu": {"instance_group": [{"kind": "KIND_MODEL", "count": 1}]}},
        pass_through=pass_through,
        **more,
        **{"model_transaction_policy": {"decoupled": True}, **config},
    )


def limits_of(engine: Mapping[str, Any]) -> dict[str, str]:
    """`parameters` of the model's config: how many requests its engine works on at once, for callers to know."""
    return {name: str(engine[name]) for name in ("max_num_seqs",) if engine.get(name) is not None}
