import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime
import pytest

from weights.whisper.checkpoint import Checkpoint, Dimensions
from weights.whisper.random_weights import random_checkpoint

ENGLISH_ONLY, MULTILINGUAL, LARGE_V3 = 51864, 51865, 51866


def dimensions(n_vocab: int = LARGE_V3, n_mels: int = 128) -> Dimensions:
    return Dimensions(
        n_mels=n_mels, n_audio_ctx=40, n_audio_state=48, n_audio_head=3, n_audio_layer=2,
        n_vocab=n_vocab, n_text_ctx=32, n_text_state=48, n_text_head=3, n_text_layer=2,
    )  # fmt: skip


@pytest.fixture(scope="session")
def small() -> Checkpoint:
    """128 mel bins, two layers in each half, 100 languages."""
    return random_checkpoint(dimensions())


@pytest.fixture(scope="session")
def open_session():
    """Opens an ONNX file on one CPU thread."""

    def open_(path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    return open_


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
