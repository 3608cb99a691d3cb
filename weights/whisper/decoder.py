"""The decoder as two ONNX graphs, made for continuous batching.

cross.onnx, once per window:
    features  float32 [batch, n_audio_ctx, n_audio_state]
    -> cross_k_i, cross_v_i  [batch, heads, n_audio_ctx, head size] for every layer i

decoder.onnx, prompts and steps alike; rows of different age share one call:
    tokens    int64 [batch, new]     new tokens of every row, shorter rows padded at their right
    lengths   int64 [batch]          how many tokens of the row's past are valid
    logits_at int64 [batch, picks]   for which of the new tokens logits are wanted
    self_k_i, self_v_i    [batch, heads, past, head size]   the past, each row valid up to its length
    cross_k_i, cross_v_i  as above
    -> logits  float32 [batch, picks, n_vocab]
    -> new_kv  [2 * layers, batch, heads, new, head size]    keys of all layers, then values: only of the new tokens

The caller owns the past: it writes `new_kv` behind each row's length. The graph never copies the past: scores over the
past and over the new tokens are taken apart, joined for one softmax, and split again. Each layer's past is an input of
its own, because picking a layer out of one big array would copy it at every step.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weights.whisper.checkpoint import Checkpoint
from weights.whisper.layers import Layers
from weights.whisper.onnx_graph import FLOAT, INT64, OnnxGraph


def write_cross(checkpoint: Checkpoint, path: Path, dtype: np.dtype) -> None:
    """Writes the keys and values of the audio, of every decoder layer."""
    sizes = checkpoint.dimensions
    graph = OnnxGraph("whisper_cross", dtype)
    layers = Layers(graph=graph, checkpoint=checkpoint, heads=sizes.n_text_head)
    features = graph.input("features", FLOAT, ["batch", sizes.n_audio_ctx, sizes.n_audio_state])
    features = graph.op("Cast", features, to=graph.float_type)
    shape = _cache_shape(checkpoint, sizes.n_audio_ctx)
    for i in range(sizes.n_text_layer):
        key, value = layers.fused(f"decoder.blocks.{i}.cross_attn", features, ("key", "value"))
        graph.output(f"cross_k_{i}", layers.split_heads(key), graph.float_type, shape)
        graph.output(f"cross_v_{i}", layers.split_heads(value), graph.float_type, shape)
    graph.write(path)


def write_decoder(checkpoint: Checkpoint, path: Path, dtype: np.dtype) -> None:
    """Writes the decoder itself."""
    sizes = checkpoint.dimensions
    graph = OnnxGraph("whisper_decoder", dtype)
    layers = Layers(graph=graph, checkpoint=checkpoint, heads=sizes.n_text_head)
    tokens = graph.input("tokens", INT64, ["batch", "new"])
    lengths = graph.input("lengths", INT64, ["batch"])
    logits_at = graph.input("logits_at", INT64, ["batch", "picks"])
    past = _Past(graph, checkpoint)
    embedding = graph.weight("decoder.token_embedding.weight", checkpoint.array("decoder.token_embedding.weight"))
    x = _embed(layers, embedding, tokens, lengths)
    bias = _attention_bias(graph, tokens, lengths, past.self_k[0])
    new_keys, new_values = [], []
    for i in range(sizes.n_text_layer):
        block = f"decoder.blocks.{i}"
        x, key, value = _self_attention(layers, block, x, past.self_k[i], past.self_v[i], bias)
        x = _cross_attention(layers, block, x, past.cross_k[i], past.cross_v[i])
        x = layers.mlp(block, x)
        new_keys.append(key)
        new_values.append(value)
    graph.output("logits", _logits(layers, embedding, x, logits_at), FLOAT, ["batch", "picks", sizes.n_vocab])
    stacked = [graph.op("Unsqueeze", new, graph.integers(0)) for new in new_keys + new_values]
    shape = [2 * sizes.n_text_layer, *_cache_shape(checkpoint, "new")]
    graph.output("new_kv", graph.op("Concat", *stacked, axis=0), graph.float_type, shape)
    graph.write(path)


class _Past:
    """The inputs that hold what was computed before, one list entry per layer."""

    def __init__(self, graph: OnnxGraph, checkpoint: Checkpoint) -> None:
        sizes = checkpoint.dimensions
        before, audio = _cache_shape(checkpoint, "past"), _cache_shape(checkpoint, sizes.n_audio_ctx)

        def per_layer(name: str, shape: list[int | str]) -> list[str]:
            return [graph.input(f"{name}_{i}", graph.float_type, shape) for i in range(sizes.n_text_layer)]

        self.self_k, self.self_v = per_layer("self_k", before), per_layer("self_v", before)
        self.cross_k, self.cross_v = per_layer("cross_k", audio), per_layer("cross_v", audio)


def _cache_shape(checkpoint: Checkpoint, positions: int | str) -> list[int | str]:
    sizes = checkpoint.dimensions
    return ["batch", sizes.n_text_head, positions, sizes.n_text_state // sizes.n_text_head]


def _embed(layers: Layers, embedding: str, tokens: str, lengths: str) -> str:
    """Token plus position: [B, T] -> [B, T, D]. A row's first new token stands at its length."""
    graph = layers.graph
    positions = graph.weight("decoder.positional_embedding", layers.checkpoint.array("decoder.positional_embedding"))
    steps = graph.op("Range", graph.integer(0), graph.size(tokens, 1), graph.integer(1))
    at = graph.op("Add", graph.op("Unsqueeze", lengths, graph.integers(1)), steps)
    return graph.op("Add", graph.op("Gather", embedding, tokens), graph.op("Gather", positions, at))


def _attention_bias(graph: OnnxGraph, tokens: str, lengths: str, past_key: str) -> str:
    """0 where a new token may look, else minus infinity: [B, 1, T, past + T], the past first."""
    zero, never = graph.weight("zero", np.array(0.0)), graph.weight("never", np.array(-np.inf))
    new = graph.size(tokens, 1)
    past_at = graph.op("Range", graph.integer(0), graph.size(past_key, 2), graph.integer(1))
    is_past = graph.op("Less", past_at, graph.op("Unsqueeze", lengths, graph.integers(1, 2, 3)))
    new_at = graph.op("Range", graph.integer(0), new, graph.integer(1))
    is_seen = graph.op("LessOrEqual", new_at, graph.op("Unsqueeze", new_at, graph.integers(1)))
    batch, new = graph.op("Shape", tokens, start=0, end=1), graph.op("Shape", tokens, start=1, end=2)
    ones = graph.integers(1)
    past_bias = graph.op(
        "Expand", graph.op("Where", is_past, zero, never), graph.op("Concat", ones, ones, new, ones, axis=0)
    )
    new_bias = graph.op(
        "Expand", graph.op("Where", is_seen, zero, never), graph.op("Concat", batch, ones, ones, ones, axis=0)
    )
    return graph.op("Concat", past_bias, new_bias, axis=-1)


def _self_attention(layers: Layers, block: str, x: str, past_k: str, past_v: str, bias: str) -> tuple[str, str, str]:
    """(x after attention, new keys, new values); the last two [B, H, T, D/H]."""
    graph = layers.graph
    query, key, value = layers.fused(f"{block}.attn", layers.norm(f"{block}.attn_ln", x), ("query", "key", "value"))
    query, key, value = layers.split_heads(query), layers.split_heads(key), layers.split_heads(value)
    scores = graph.op("Concat", _scores(graph, query, past_k), _scores(graph, query, key), axis=-1)
    weights = graph.op("Softmax", graph.op("Add", scores, bias), axis=-1)
    lengths = graph.op(
        "Concat", graph.op("Shape", past_k, start=2, end=3), graph.op("Shape", key, start=2, end=3), axis=0
    )
    on_past, on_new = graph.ops("Split", weights, lengths, results=2, axis=-1)
    attended = graph.op("Add", graph.op("MatMul", on_past, past_v), graph.op("MatMul", on_new, value))
    x = graph.op("Add", x, layers.linear(f"{block}.attn.out", layers.join_heads(attended)))
    return x, key, value


def _cross_attention(layers: Layers, block: str, x: str, cross_k: str, cross_v: str) -> str:
    graph = layers.graph
    (query,) = layers.fused(f"{block}.cross_attn", layers.norm(f"{block}.cross_attn_ln", x), ("query",))
    weights = graph.op("Softmax", _scores(graph, layers.split_heads(query), cross_k), axis=-1)
    attended = layers.join_heads(graph.op("MatMul", weights, cross_v))
    return graph.op("Add", x, layers.linear(f"{block}.cross_attn.out", attended))


def _scores(graph: OnnxGraph, query: str, key: str) -> str:
    return graph.op("MatMul", query, graph.op("Transpose", key, perm=(0, 1, 3, 2)))


def _logits(layers: Layers, embedding: str, x: str, logits_at: str) -> str:
    """Logits of the picked tokens only: the vocabulary is the widest product of all."""
    graph, state = layers.graph, layers.checkpoint.dimensions.n_text_state
    at = graph.op("Unsqueeze", logits_at, graph.integers(2))
    shape = graph.op("Concat", graph.op("Shape", logits_at), graph.integers(state), axis=0)
    picked = graph.op("GatherElements", layers.norm("decoder.ln", x), graph.op("Expand", at, shape), axis=1)
    flat = graph.op("Reshape", picked, graph.integers(-1, state))
    product = graph.op("Gemm", flat, embedding, transB=1)
    vocabulary = graph.integers(layers.checkpoint.dimensions.n_vocab)
    return graph.op("Reshape", product, graph.op("Concat", graph.op("Shape", logits_at), vocabulary, axis=0))
