"""A language model's architecture, as its checkpoint's `config.json` gives it in Hugging Face's names.

In: the config. Out: a `Network`: its attention layers (for the KV cache) and its weights by group (for the memory).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from builder.errors import DeclarationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """What one layer keeps of every token.

    Attributes:
        heads: heads of keys and values; 1 where a latent is kept (MLA).
        width: elements that one head keeps of a token: keys and values together.
        window: how many tokens back it looks; None for all of them.
        latent: keys and values are one vector for all heads, which tensor parallelism cannot split.
    """

    heads: int
    width: int
    window: int | None = None
    latent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A language model.

    Attributes:
        name: the architecture, `LlamaForCausalLM`.
        attention: its attention layers, in order.
        linear: weights of matrices inside the layers, which quantization shrinks and tensor parallelism splits.
        kv_linear: those among `linear` that make keys and values: split at most as often as there are heads.
        unsplit: those among `linear` that every rank holds (MLA's projections down).
        embedding, head: weights of the token table and of the output; a tied head has none.
        small: norms, biases, routers: never split, never quantized.
        hidden, inner, vocabulary: widths; `inner` is that of the widest feed-forward part a token passes.
        heads: attention heads.
        longest: positions it was made for.
        quantization: the checkpoint's own `quantization_config`.
        dtype: how its weights are stored, `bfloat16`.
    """

    name: str
    attention: tuple[Attention, ...]
    linear: int
    kv_linear: int
    unsplit: int
    embedding: int
    head: int
    small: int
    hidden: int
    inner: int
    vocabulary: int
    heads: int
    longest: int
    quantization: Mapping[str, Any]
    dtype: str

    @property
    def parameters(self) -> int:
        """All weights, as model cards count them."""
        return self.linear + self.embedding + self.head + self.small


def read_network(config: Mapping[str, Any], where: str = "config.json") -> Network:
    """The network of a config.

    Raises:
        DeclarationError: it is not a language model's, or of a kind whose cache is not per token.
    """
    text = {**config, **config.get("text_config", {})}
    name = (config.get("architectures") or [config.get("model_type", "?")])[0]
    layers, hidden = _count(text, where, "num_hidden_layers", "n_layer"), _count(text, where, "hidden_size", "n_embd")
    heads = _count(text, where, "num_attention_heads", "n_head")
    if any(text.get(key) for key in ("ssm_cfg", "mamba_d_state", "state_size", "linear_num_key_heads")):
        raise DeclarationError(
            where=where,
            found=f"{name} keeps a state of fixed size for each sequence in some layers",
            expected="attention in every layer is what this plan can add up",
            fix="Give the engine's cache a size of its own by kv_cache_memory_bytes",
        )
    attention = tuple(_attention(text, index, layers, hidden, heads) for index in range(layers))
    linear = kv_linear = unsplit = small = inner = 0
    for index in range(layers):
        attending, of_kv, whole, biases = _projections(text, hidden, heads)
        forward, widest, routing = _feed_forward(text, index, hidden)
        linear += attending + forward
        kv_linear, unsplit = kv_linear + of_kv, unsplit + whole
        small += biases + routing + _norms(text, hidden)
        inner = max(inner, widest)
    vocabulary = _count(text, where, "vocab_size")
    narrow = text.get("word_embed_proj_dim", hidden)
    table = vocabulary * narrow + (_positions(text) * hidden)
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings", _tied_unless_said(text)))
    return Network(
        name=name,
        attention=attention,
        linear=linear,
        kv_linear=kv_linear,
        unsplit=unsplit,
        embedding=table,
        head=0 if tied else vocabulary * narrow,
        small=small + _last_norm(text, hidden),
        hidden=hidden,
        inner=inner,
        vocabulary=vocabulary,
        heads=heads,
        longest=int(text.get("max_position_embeddings") or text.get("n_positions") or 2048),
        quantization=config.get("quantization_config") or text.get("quantization_config") or {},
        dtype=str(config.get("dtype") or config.get("torch_dtype") or text.get("dtype") or text.get("torch_dtype")),
    )


def _count(text: Mapping[str, Any], where: str, *names: str) -> int:
    for name in names:
        if isinstance(text.get(name), int):
            return int(text[name])
    raise DeclarationError(
        where=where,
        found=f"no {names[0]} in it",
        expected="the config.json of a language model, in Hugging Face's names, is needed",
        fix="Name the folder with the checkpoint",
    )


def _is_latent(text: Mapping[str, Any]) -> bool:
    return bool(text.get("kv_lora_rank"))


def _kv_heads(text: Mapping[str, Any]) -> int:
    if text.get("multi_query"):
        return 1
    return int(text.get("num_key_value_heads") or text.get("num_attention_heads") or text.get("n_head") or 1)


def _head_size(text: Mapping[str, Any], hidden: int, heads: int) -> int:
    return int(text.get("head_dim") or hidden // heads)


def _attention(text: Mapping[str, Any], index: int, layers: int, hidden: int, heads: int) -> Attention:
    if _is_latent(text):
        return Attention(heads=1, width=text["kv_lora_rank"] + text["qk_rope_head_dim"], latent=True)
    window = text.get("sliding_window") if _has_window(text, index, layers) else None
    return Attention(heads=_kv_heads(text), width=2 * _head_size(text, hidden, heads), window=window)


def _has_window(text: Mapping[str, Any], index: int, layers: int) -> bool:
    """Whether a layer looks back a window only, by the several ways in which configs say so."""
    if not text.get("sliding_window") or text.get("use_sliding_window") is False:
        return False
    kinds = text.get("layer_types")
    if kinds:
        return bool(kinds[index] == "sliding_attention")
    kind = text.get("model_type", "")
    if text.get("sliding_window_pattern") or kind.startswith("gemma3"):
        return bool((index + 1) % int(text.get("sliding_window_pattern") or 6))
    if kind in ("gemma2", "gpt_oss"):
        return index % 2 == 0
    if text.get("use_sliding_window"):
        return bool(index >= text.get("max_window_layers", layers))
    return True


def _projections(text: Mapping[str, Any], hidden: int, heads: int) -> tuple[int, int, int, int]:
    """(weights of attention, those of keys and values, those that no rank shares, biases) of one layer."""
    if _is_latent(text):
        rank, rope = text["kv_lora_rank"], text["qk_rope_head_dim"]
        query, value = text["qk_nope_head_dim"] + rope, text["v_head_dim"]
        down = text.get("q_lora_rank") or 0
        to_query = hidden * down + down * heads * query if down else hidden * heads * query
        shared = hidden * (rank + rope) + hidden * down
        up = rank * heads * (text["qk_nope_head_dim"] + value)
        return to_query + hidden * (rank + rope) + up + heads * value * hidden, 0, shared, rank + down
    size, of_kv = _head_size(text, hidden, heads), _kv_heads(text)
    kv = 2 * hidden * of_kv * size
    biased = _attention_bias(text)
    biases = (heads + 2 * of_kv) * size if biased else 0
    biases += hidden if biased == "all" else 0
    if text.get("model_type") == "gpt_oss":
        biases += heads  # the sinks
    return hidden * heads * size * 2 + kv, kv, 0, biases


def _attention_bias(text: Mapping[str, Any]) -> str:
    """Which projections have a bias: none (empty), "qkv", or "all"."""
    kind = text.get("model_type", "")
    if kind in ("opt", "gpt2", "gpt_bigcode", "starcoder2", "phi", "gpt_oss"):
        return "all"
    if kind in ("qwen2", "qwen2_moe"):
        return "qkv"
    return "all" if text.get("attention_bias") else ""


def _feed_forward(text: Mapping[str, Any], index: int, hidden: int) -> tuple[int, int, int]:
    """(weights, widest part a token passes, weights of router and biases) of one layer's feed-forward part."""
    experts = int(text.get("num_local_experts") or text.get("n_routed_experts") or text.get("num_experts") or 0)
    inner = int(text.get("intermediate_size") or text.get("ffn_dim") or text.get("n_inner") or 4 * hidden)
    if experts and _is_routed(text, index):
        width = int(text.get("moe_intermediate_size") or inner)
        each = int(text.get("num_experts_per_tok") or 1)
        shared = int(text.get("shared_expert_intermediate_size") or (text.get("n_shared_experts") or 0) * width)
        weights = 3 * hidden * (experts * width + shared)
        routing = experts * hidden + (hidden if text.get("shared_expert_intermediate_size") else 0)
        if text.get("model_type") == "gpt_oss":
            routing += experts * (2 * width + hidden) + experts
        return weights, each * width + shared, routing
    if text.get("model_type") in ("opt", "gpt2", "gpt_bigcode", "starcoder2", "phi"):
        return 2 * hidden * inner, inner, inner + hidden
    biases = 2 * inner + hidden if text.get("mlp_bias") else 0
    return 3 * hidden * inner, inner, biases


def _is_routed(text: Mapping[str, Any], index: int) -> bool:
    if index < int(text.get("first_k_dense_replace") or 0) or index in (text.get("mlp_only_layers") or ()):
        return False
    every = int(text.get("moe_layer_freq") or 1) if isinstance(text.get("moe_layer_freq"), int) else 1
    sparse = int(text.get("decoder_sparse_step") or 1)
    return index % every == 0 and (index + 1) % sparse == 0


def _norms(text: Mapping[str, Any], hidden: int) -> int:
    kind = text.get("model_type", "")
    each = 2 * hidden if kind in ("opt", "gpt2", "gpt_bigcode", "starcoder2") else hidden
    size = _head_size(text, hidden, int(text.get("num_attention_heads") or text.get("n_head") or 1))
    own = 2 * size if kind.startswith(("qwen3", "gemma3")) else 0
    return (4 if kind.startswith(("gemma2", "gemma3")) else 2) * each + own


def _last_norm(text: Mapping[str, Any], hidden: int) -> int:
    return 2 * hidden if text.get("model_type") in ("opt", "gpt2", "gpt_bigcode", "starcoder2") else hidden


def _positions(text: Mapping[str, Any]) -> int:
    """Rows of a learned table of positions."""
    if text.get("model_type") == "opt":
        return int(text["max_position_embeddings"]) + 2
    return int(text.get("n_positions", 0)) if text.get("model_type") in ("gpt2", "gpt_bigcode") else 0


def _tied_unless_said(text: Mapping[str, Any]) -> bool:
    return text.get("model_type", "").startswith(("gemma", "opt", "gpt2"))
