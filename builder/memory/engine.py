"""The language models of a plan: their engine's arguments, their network, what they take on each GPU besides the cache.

In: a model with `model.json`. Out: an `Engine`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from builder.errors import DeclarationError
from builder.memory.devices import GIB, MIB
from builder.memory.kv import GPU_BLOCK, Cache, cache_of
from builder.memory.llm_weights import DTYPE_BYTES, engine_dtype, quantization, weight_bytes
from builder.memory.network import Network, read_network
from builder.model import Model

GRAPHS_BYTES = GIB
NON_TORCH_BYTES = 256 * MIB
_BATCHED, _SEQUENCES = 8192, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A language model as it will be started.

    Attributes:
        model: name of the model in the repository.
        network: its architecture.
        arguments: the engine's, by vLLM's names.
        first: number of the first GPU it is on; others follow, if it spans several.
    """

    model: str
    network: Network
    arguments: Mapping[str, Any]
    first: int = 0

    @property
    def gpus(self) -> range:
        """The GPUs it is on."""
        return range(self.first, self.first + self.tensor_parallel * self.pipeline_parallel)

    @property
    def tensor_parallel(self) -> int:
        """GPUs that share every layer."""
        return int(self.arguments.get("tensor_parallel_size") or 1)

    @property
    def pipeline_parallel(self) -> int:
        """Groups of GPUs that share the layers among them."""
        return int(self.arguments.get("pipeline_parallel_size") or 1)

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence it shall take."""
        return int(self.arguments.get("max_model_len") or self.network.longest)

    @property
    def most_sequences(self) -> int:
        """Sequences that run at once at most."""
        return int(self.arguments.get("max_num_seqs") or _SEQUENCES)

    @property
    def batched_tokens(self) -> int:
        """Tokens of one step at most."""
        return int(self.arguments.get("max_num_batched_tokens") or _BATCHED)

    @property
    def given_cache_bytes(self) -> int | None:
        """The size of the cache on each GPU, where the arguments fix it."""
        given = self.arguments.get("kv_cache_memory_bytes")
        return int(given) if given else None

    @property
    def dtype(self) -> str:
        """The type it computes in."""
        return engine_dtype(self.network, self.arguments.get("dtype"))

    @property
    def unknown_quantization(self) -> str:
        """The method by which its weights are quantized, where its size is not known; empty otherwise."""
        given = self.network.quantization
        told = str(given.get("quant_method") or self.arguments.get("quantization") or "")
        return "" if quantization(given, self.arguments.get("quantization")) else told

    @property
    def storage(self) -> str:
        """How its weights are stored, for a person."""
        how = quantization(self.network.quantization, self.arguments.get("quantization"))
        return how.name if how else self.dtype

    def weights(self) -> int:
        """Bytes of weights on the GPU that holds most."""
        return weight_bytes(
            self.network,
            dtype=self.arguments.get("dtype"),
            method=self.arguments.get("quantization"),
            tensor_parallel=self.tensor_parallel,
            pipeline_parallel=self.pipeline_parallel,
        )

    def activations(self) -> int:
        """Bytes that one step needs at most: an estimate of what vLLM's profile run finds.

        The feed-forward part of a layer with the residual stream beside it, and the logits of every sequence in 32
        bits, three times for sampling.
        """
        width = DTYPE_BYTES.get(self.dtype, 2)
        each = 3 * self.network.hidden + 3 * self.network.inner // self.tensor_parallel
        logits = min(self.most_sequences, self.batched_tokens) * self.network.vocabulary * 4 * 3
        return self.batched_tokens * each * width + logits

    def graphs(self) -> int:
        """Bytes of captured CUDA graphs: an estimate, none if they are switched off."""
        return 0 if self.arguments.get("enforce_eager") else GRAPHS_BYTES

    def cache(self) -> Cache:
        """Its cache."""
        return cache_of(
            self.network,
            dtype_bytes=DTYPE_BYTES.get(self.dtype, 2),
            cache_dtype=str(self.arguments.get("kv_cache_dtype") or "auto"),
            block_tokens=int(self.arguments.get("block_size") or GPU_BLOCK),
            batched_tokens=self.batched_tokens,
            tensor_parallel=self.tensor_parallel,
            pipeline_parallel=self.pipeline_parallel,
        )

    def changed(self, **arguments: Any) -> Engine:
        """The same with other arguments."""
        return replace(self, arguments={**self.arguments, **arguments})


def is_engine(model: Model) -> bool:
    """Whether a model runs vLLM: by its backend, or by the file that holds the engine's arguments."""
    return "model.json" in model.texts or model.config.get("backend") == "vllm"


def engine_of(model: Model, exports: Path, first: int = 0) -> Engine:
    """The engine of a model, on GPUs from `first` on.

    Raises:
        DeclarationError: its checkpoint's config can neither be found nor read.
    """
    arguments = json.loads(model.texts.get("model.json", "{}"))
    name = str(arguments.get("model", ""))
    folder = next((exports / one.source for one in model.artifacts if one.target == name), Path(name))
    file = folder / "config.json"
    if file.is_file():
        config = _read_config(file, model.name)
    elif name in known_networks():
        config = known_networks()[name]
    else:
        raise DeclarationError(
            where=model.name,
            found=f"there is no {file}, and no published model of the name {name} is in the table",
            expected="the checkpoint's config.json is needed to add up its weights and its cache",
            fix=f"Name a folder with the checkpoint, or one of {', '.join(known_networks())}",
        )
    return Engine(model=model.name, network=read_network(config, model.name), arguments=arguments, first=first)


def _read_config(file: Path, where: str) -> Mapping[str, Any]:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        config, words = None, str(error)
    else:
        words = f"it holds a {type(config).__name__}"
    if not isinstance(config, dict):
        raise DeclarationError(
            where=where,
            found=f"{file} cannot be read as a config ({words})",
            expected="one JSON object, as Hugging Face writes it, is needed",
            fix="Fetch the checkpoint again",
        )
    return config


@cache
def known_networks() -> Mapping[str, Mapping[str, Any]]:
    """Configs of some published models by their name on Hugging Face, for plans made before anything is fetched."""
    text = resources.files("builder").joinpath("data/networks.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = json.loads(text)["networks"]
    return found
