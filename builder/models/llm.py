"""LLM: chat messages or a prompt to streamed text, by vLLM's engine.

In: MESSAGES or PROMPT, SAMPLING_PARAMETERS, strings. Out: first what it passes through, then TEXT, piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.backends.vllm import vllm
from builder.model import Model
from shipped import ROOT

DEFAULT = "tiny-llama"
PASS_THROUGH = ("TRANSCRIPT", "DETECTIONS")

# The small Llama on a CPU, beside the other models: 4 kB of cache for each token, 64,000 tokens in all.
_TINY = {
    "dtype": "float32",
    "max_model_len": 2048,
    "max_num_seqs": 16,
    "enforce_eager": True,
    "kv_cache_memory_bytes": 256 << 20,
    "override_generation_config": {"temperature": 0.0},  # it copies; chance can only harm
}
# Any other checkpoint: vLLM would take nine tenths of the device, and other models live on it, too.
_OTHER = {"gpu_memory_utilization": 0.5}


def llm(
    checkpoint: str | Path = DEFAULT,
    *,
    engine: Mapping[str, Any] | None = None,
    pass_through: Sequence[str] = PASS_THROUGH,
    **config: Any,
) -> Model:
    """The language model.

    Args:
        checkpoint: the packaged model's name, a folder in Hugging Face's layout, or a name on Hugging Face.
        engine: arguments of the engine by vLLM's names; they are checked against the installed vLLM when it starts.
        pass_through: names of string tensors that go in and come out with the first response.
        config: any other part of ModelConfig, by Triton's names.
    """
    tiny = str(checkpoint) == DEFAULT
    folder = ROOT / "weights" / "llm" / "checkpoint" if tiny else Path(checkpoint)
    linked = tiny or folder.is_dir()
    arguments = {"model": "checkpoint" if linked else str(checkpoint), **(_TINY if tiny else _OTHER), **(engine or {})}
    return vllm(
        "llm",
        engine=arguments,
        checkpoint=folder.absolute() if linked else None,
        pass_through=pass_through,
        usual={"MESSAGES": [4000], "PROMPT": [4000], "TRANSCRIPT": [500], "DETECTIONS": [2000], "TEXT": [8]},
        **config,
    )
