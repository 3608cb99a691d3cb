"""Language models: sizes of published ones, and blocks against what vLLM's real engine reports."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builder.errors import DeclarationError
from builder.memory.kv import cache_of
from builder.memory.llm_weights import engine_dtype, weight_bytes
from builder.memory.network import read_network

HERE = Path(__file__).parent


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PUBLISHED = _module("published").PUBLISHED
TINY = {
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 512,
    "max_position_embeddings": 4096, "torch_dtype": "float32", "tie_word_embeddings": True,
}  # fmt: skip
# name -> (config, engine's arguments): grouped queries; one KV head in 16 bits; windows beside full layers; windows
# alone; a latent instead of keys and values.
ENGINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama": (
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 5,
         "num_key_value_heads": 2, "head_dim": 32},
        {"kv_cache_memory_bytes": 37 << 20, "max_model_len": 1024, "dtype": "float32"},
    ),
    "qwen2": (
        {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "num_hidden_layers": 3,
         "num_key_value_heads": 1, "hidden_size": 128},
        {"kv_cache_memory_bytes": 21 << 20, "max_model_len": 2048, "dtype": "bfloat16"},
    ),
    "gemma3": (
        {"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "num_hidden_layers": 12,
         "num_key_value_heads": 1, "head_dim": 64, "sliding_window": 256, "query_pre_attn_scalar": 64,
         "sliding_window_pattern": 6, "hidden_activation": "gelu_pytorch_tanh"},
        {"kv_cache_memory_bytes": 64 << 20, "max_model_len": 2048, "dtype": "float32"},
    ),
    "mistral": (
        {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "num_hidden_layers": 4,
         "num_key_value_heads": 4, "head_dim": 32, "sliding_window": 512},
        {"kv_cache_memory_bytes": 48 << 20, "max_model_len": 2048, "dtype": "float32"},
    ),
    "deepseek": (
        {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "num_hidden_layers": 3,
         "num_key_value_heads": 4, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
         "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
         "v_head_dim": 128, "first_k_dense_replace": 3, "moe_intermediate_size": 64},
        {"kv_cache_memory_bytes": 50 << 20, "max_model_len": 1024, "dtype": "bfloat16"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_their_known_size(name):
    known = PUBLISHED[name]
    network = read_network(known["config"])
    ways = {"tensor_parallel": known.get("tensor_parallel", 1)}
    if "parameters" in known:
        assert network.parameters == known["parameters"]
    assert weight_bytes(network, **ways) / 1e9 == pytest.approx(known["weight_gb"], rel=0.003)
    assert cache_of(network, dtype_bytes=2, **ways).bytes_per_token == known["kv_bytes"]


def test_a_cache_of_eight_bits_holds_twice_as_much_and_is_not_split_below_one_head():
    network = read_network(PUBLISHED["Llama-3-8B"]["config"])
    full = cache_of(network, dtype_bytes=2)
    assert cache_of(network, dtype_bytes=2, cache_dtype="fp8").bytes_per_token * 2 == full.bytes_per_token
    assert cache_of(network, dtype_bytes=2, tensor_parallel=16).bytes_per_token == full.bytes_per_token // 8
    assert cache_of(network, dtype_bytes=2, pipeline_parallel=2).bytes_per_token == full.bytes_per_token // 2


def test_a_latent_is_not_split_by_tensor_parallelism():
    network = read_network(PUBLISHED["DeepSeek-V2-Lite"]["config"])
    assert cache_of(network, dtype_bytes=2, tensor_parallel=4).bytes_per_token == 27 * 576 * 2


def test_a_window_bounds_what_a_long_sequence_takes():
    network = read_network(PUBLISHED["Mistral-7B-v0.1"]["config"])
    cache = cache_of(network, dtype_bytes=2, batched_tokens=2048)
    assert cache.blocks_of(1 << 20) == (4095 + 2048 + 15) // 16 + 1
    assert cache.blocks_of(1 << 20) == cache.blocks_of(1 << 15)


def test_a_float32_checkpoint_is_loaded_in_16_bits_unless_asked_otherwise():
    network = read_network({**PUBLISHED["Llama-3-8B"]["config"], "torch_dtype": "float32"})
    assert engine_dtype(network, None) == engine_dtype(network, "auto") == "float16"
    assert weight_bytes(network, dtype="float32") == 2 * weight_bytes(network)


def test_a_network_with_a_state_instead_of_a_cache_is_refused_with_what_to_do():
    config = {"architectures": ["MambaForCausalLM"], "hidden_size": 8, "num_hidden_layers": 1, "state_size": 16}
    with pytest.raises(DeclarationError, match="kv_cache_memory_bytes"):
        read_network({**config, "num_attention_heads": 1})
    with pytest.raises(DeclarationError, match="no num_hidden_layers in it"):
        read_network({"architectures": ["Resnet"]})


@pytest.fixture(scope="module")
def real_engines() -> dict[str, dict[str, int]]:
    """What the real engine on the CPU reports for each of ENGINES."""
    cases = []
    for config, engine in ENGINES.values():
        longest = max(engine["max_model_len"], 512)
        cases.append({"config": TINY | config, "engine": {**engine, "max_num_batched_tokens": longest}})
    done = subprocess.run(
        [sys.executable, str(HERE / "real_blocks.py"), json.dumps(cases)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "ORT_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    told = [json.loads(line.removeprefix("REAL ")) for line in done.stdout.splitlines() if line.startswith("REAL ")]
    assert len(told) == len(cases), done.stderr[-3000:]
    return dict(zip(ENGINES, told, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_blocks_and_tokens_are_those_of_the_real_engine(name, real_engines):
    config, engine = ENGINES[name]
    real = real_engines[name]
    cache = cache_of(
        read_network(TINY | config),
        dtype_bytes=4 if engine["dtype"] == "float32" else 2,
        block_tokens=real["block_size"],
        batched_tokens=real["batched"],
    )
    assert cache.blocks(engine["kv_cache_memory_bytes"]) == pytest.approx(real["blocks"], rel=0.01)
    assert cache.tokens(engine["kv_cache_memory_bytes"], engine["max_model_len"]) == pytest.approx(
        real["tokens"], rel=0.01
    )
