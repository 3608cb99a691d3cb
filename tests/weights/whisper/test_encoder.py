from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from weights.whisper.checkpoint import Checkpoint, reference_network
from weights.whisper.encoder import write_encoder


@pytest.fixture
def mel(rng: np.random.Generator, small: Checkpoint) -> np.ndarray:
    return rng.standard_normal((3, 128, 2 * small.dimensions.n_audio_ctx), np.float32)


@pytest.fixture
def expected(small: Checkpoint, mel: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return reference_network(small).encoder(torch.from_numpy(mel)).numpy()


def test_features_equal_the_package_s_for_any_batch(small, mel, expected, open_session, tmp_path: Path) -> None:
    write_encoder(small, tmp_path / "encoder.onnx", np.dtype("float32"))
    session = open_session(tmp_path / "encoder.onnx")
    for batch in (1, 3):
        (features,) = session.run(["features"], {"mel": mel[:batch]})
        np.testing.assert_allclose(features, expected[:batch], atol=2e-5)


def test_float16_stays_inside(small, mel, expected, open_session, tmp_path: Path) -> None:
    write_encoder(small, tmp_path / "encoder.onnx", np.dtype("float16"))
    session = open_session(tmp_path / "encoder.onnx")
    (features,) = session.run(["features"], {"mel": mel})
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected, atol=0.03)
    weights = onnx.load(tmp_path / "encoder.onnx").graph.initializer
    assert {w.data_type for w in weights if w.name.endswith("weight.T")} == {onnx.TensorProto.FLOAT16}
