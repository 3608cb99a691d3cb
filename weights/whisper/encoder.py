"""The encoder as ONNX.

In: `mel` float32 [batch, n_mels, 3000]. Out: `features` float32 [batch, n_audio_ctx, n_audio_state].
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weights.whisper.checkpoint import Checkpoint
from weights.whisper.layers import Layers
from weights.whisper.onnx_graph import FLOAT, OnnxGraph


def write_encoder(checkpoint: Checkpoint, path: Path, dtype: np.dtype) -> None:
    """Writes the encoder. With float16 only its inside is float16; what crosses the wire stays float32."""
    sizes = checkpoint.dimensions
    graph = OnnxGraph("whisper_encoder", dtype)
    layers = Layers(graph=graph, checkpoint=checkpoint, heads=sizes.n_audio_head)
    mel = graph.input("mel", FLOAT, ["batch", sizes.n_mels, 2 * sizes.n_audio_ctx])
    x = _convolutions(layers, graph.op("Cast", mel, to=graph.float_type))
    for i in range(sizes.n_audio_layer):
        x = _block(layers, f"encoder.blocks.{i}", x)
    features = layers.norm("encoder.ln_post", x)
    graph.output("features", features, FLOAT, ["batch", sizes.n_audio_ctx, sizes.n_audio_state])
    graph.write(path)


def _convolutions(layers: Layers, mel: str) -> str:
    """[B, n_mels, 3000] -> [B, 1500, D], positions added."""
    graph, checkpoint = layers.graph, layers.checkpoint
    x = mel
    for name, stride in (("encoder.conv1", 1), ("encoder.conv2", 2)):
        weight = graph.weight(f"{name}.weight", checkpoint.array(f"{name}.weight"))
        bias = graph.weight(f"{name}.bias", checkpoint.array(f"{name}.bias"))
        x = layers.gelu(graph.op("Conv", x, weight, bias, kernel_shape=[3], pads=[1, 1], strides=[stride]))
    positions = graph.weight("encoder.positional_embedding", checkpoint.array("encoder.positional_embedding"))
    return graph.op("Add", graph.op("Transpose", x, perm=(0, 2, 1)), positions)


def _block(layers: Layers, block: str, x: str) -> str:
    graph = layers.graph
    query, key, value = layers.fused(f"{block}.attn", layers.norm(f"{block}.attn_ln", x), ("query", "key", "value"))
    scores = graph.op("MatMul", layers.split_heads(query), layers.split_heads(key, (0, 2, 3, 1)))
    attended = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), layers.split_heads(value))
    x = graph.op("Add", x, layers.linear(f"{block}.attn.out", layers.join_heads(attended)))
    return layers.mlp(block, x)
