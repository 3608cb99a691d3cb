"""Small checkpoints with random weights, exported and read back as the server does."""

from pathlib import Path

import numpy as np
import whisper_tokens
from whisper_slots import Graphs

from weights.whisper.checkpoint import Checkpoint, Dimensions
from weights.whisper.export import write_export
from weights.whisper.random_weights import random_checkpoint

ENGLISH_ONLY, LARGE_V3 = 51864, 51866


def small_dimensions(n_vocab: int, n_text_ctx: int, *, n_audio_ctx: int = 40, n_mels: int = 80) -> Dimensions:
    return Dimensions(
        n_mels=n_mels, n_audio_ctx=n_audio_ctx, n_audio_state=32, n_audio_head=2, n_audio_layer=1,
        n_vocab=n_vocab, n_text_ctx=n_text_ctx, n_text_state=32, n_text_head=2, n_text_layer=2,
    )  # fmt: skip


class Served:
    """An export read back as the server does."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.folder = folder
        self.sizes, self.tokens = whisper_tokens.read_description(folder / "whisper.json")
        self.vocabulary = whisper_tokens.read_vocabulary(folder / "whisper.tiktoken")
        self.graphs = Graphs(folder, threads)


class Small(Served):
    """A small random checkpoint, exported and read back."""

    def __init__(self, folder: Path, n_vocab: int, n_text_ctx: int) -> None:
        self.dimensions = small_dimensions(n_vocab, n_text_ctx)
        self.checkpoint: Checkpoint = random_checkpoint(self.dimensions, seed=1)
        write_export(self.checkpoint, folder)
        super().__init__(folder)
        self._ears = np.random.default_rng(5).standard_normal((80, 32), np.float32) / 4

    def encode(self, mel: np.ndarray) -> np.ndarray:
        """Stands in for the encoder: features [n, 40, 32] that depend on the first frames of each window."""
        return np.tanh(mel[:, :, : self.sizes.n_audio_ctx].transpose(0, 2, 1) @ self._ears)
