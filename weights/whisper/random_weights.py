"""A Whisper network of any size with random weights: what tests and benchmarks use where no checkpoint is needed.

In: dimensions, a seed. Out: a `Checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weights.whisper.checkpoint import Checkpoint, Dimensions


def random_checkpoint(dimensions: Dimensions, seed: int = 0) -> Checkpoint:
    """Random weights of a scale at which every part of the network matters to the next token.

    Small token embeddings: they are also the output projection, and big ones make the last token the likeliest next.
    Big queries: attention that looks at single places of the audio, and not at the average of all.
    """
    rng = np.random.default_rng(seed)
    arrays = {name: _array(name, shape, rng) for name, shape in _shapes(dimensions)}
    return Checkpoint(source=f"random weights, seed {seed}", dimensions=dimensions, arrays=arrays)


def _array(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    values = rng.standard_normal(shape, np.float32)
    if name.endswith("bias"):
        return 0.1 * values
    if len(shape) == 1:  # a norm's weight
        return 1.0 + 0.1 * values
    if "embedding" in name:
        return np.float32(0.3 if "token" in name else 1.0) * values
    return np.float32(4.0 if "query" in name else 1.0) * values / np.float32(np.sqrt(np.prod(shape[1:])))


def _shapes(sizes: Dimensions) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(name, shape) of every array, in openai-whisper's names."""
    audio, text = sizes.n_audio_state, sizes.n_text_state
    yield "encoder.conv1.weight", (audio, sizes.n_mels, 3)
    yield "encoder.conv1.bias", (audio,)
    yield "encoder.conv2.weight", (audio, audio, 3)
    yield "encoder.conv2.bias", (audio,)
    yield "encoder.positional_embedding", (sizes.n_audio_ctx, audio)
    for i in range(sizes.n_audio_layer):
        yield from _block(f"encoder.blocks.{i}", audio, ("attn",))
    yield from _norm("encoder.ln_post", audio)
    yield "decoder.token_embedding.weight", (sizes.n_vocab, text)
    yield "decoder.positional_embedding", (sizes.n_text_ctx, text)
    for i in range(sizes.n_text_layer):
        yield from _block(f"decoder.blocks.{i}", text, ("attn", "cross_attn"))
    yield from _norm("decoder.ln", text)


def _block(name: str, state: int, attentions: tuple[str, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for attention in attentions:
        for part in ("query", "key", "value", "out"):
            yield f"{name}.{attention}.{part}.weight", (state, state)
            if part != "key":
                yield f"{name}.{attention}.{part}.bias", (state,)
        yield from _norm(f"{name}.{attention}_ln", state)
    yield f"{name}.mlp.0.weight", (4 * state, state)
    yield f"{name}.mlp.0.bias", (4 * state,)
    yield f"{name}.mlp.2.weight", (state, 4 * state)
    yield f"{name}.mlp.2.bias", (state,)
    yield from _norm(f"{name}.mlp_ln", state)


def _norm(name: str, state: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (state,)
    yield f"{name}.bias", (state,)
