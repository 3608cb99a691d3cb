"""A Whisper checkpoint as a value, whatever file it came from.

In: nothing. Out: `Checkpoint`, with the arrays under openai-whisper's names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weights.errors import ExportError

if TYPE_CHECKING:
    from whisper import Whisper


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """Sizes of one Whisper network, under openai-whisper's own names (its `ModelDimensions`)."""

    n_mels: int
    n_audio_ctx: int
    n_audio_state: int
    n_audio_head: int
    n_audio_layer: int
    n_vocab: int
    n_text_ctx: int
    n_text_state: int
    n_text_head: int
    n_text_layer: int

    @property
    def is_multilingual(self) -> bool:
        """Whether the vocabulary has language tokens in use: English-only ones have 51864 entries."""
        return self.n_vocab >= 51865

    @property
    def n_languages(self) -> int:
        """How many language tokens the vocabulary has room for: 99, since large-v3 100."""
        return self.n_vocab - 51765 - int(self.is_multilingual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What an exporter needs.

    Attributes:
        source: Where it came from, for people.
        arrays: openai-whisper's state dict, float16 or float32.
    """

    source: str
    dimensions: Dimensions
    arrays: Mapping[str, np.ndarray]

    def array(self, name: str) -> np.ndarray:
        """One array by name.

        Raises:
            ExportError: The checkpoint lacks it.
        """
        if name not in self.arrays:
            raise ExportError(
                f"{self.source}: no array {name} among its {len(self.arrays)}. "
                "A checkpoint of an unmodified Whisper network is expected."
            )
        return self.arrays[name]


def reference_network(checkpoint: Checkpoint) -> Whisper:
    """openai-whisper's own network with these weights in float32: what our graphs are compared with.

    Raises:
        RuntimeError: Arrays are left over or missing.
    """
    import torch
    from whisper import ModelDimensions, Whisper

    network = Whisper(ModelDimensions(**dataclasses.asdict(checkpoint.dimensions)))
    arrays = {name: torch.from_numpy(array.astype(np.float32)) for name, array in checkpoint.arrays.items()}
    network.load_state_dict(arrays)
    return network.eval()
