"""The served files of `whisper_decoder` and `whisper_features` importable as in the server."""

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
HERE = Path(__file__).parent
SERVED = HERE.parents[2] / "model_repository"
sys.path[:0] = [str(HERE), *(str(SERVED / model / "1") for model in ("whisper_decoder", "whisper_features"))]

from whisper_small import ENGLISH_ONLY, LARGE_V3, Small  # noqa: E402


@pytest.fixture(scope="session")
def english(tmp_path_factory) -> Small:
    """English-only, 448 tokens of context."""
    return Small(tmp_path_factory.mktemp("english"), ENGLISH_ONLY, 448)


@pytest.fixture(scope="session")
def multilingual(tmp_path_factory) -> Small:
    """100 languages, and a context of 32 tokens so that windows are short."""
    return Small(tmp_path_factory.mktemp("multilingual"), LARGE_V3, 32)
