"""decoder.onnx and cross.onnx against openai-whisper's own decoder: prompts, steps, rows of different age."""

from pathlib import Path

import numpy as np
import pytest
import torch

from weights.whisper.checkpoint import Checkpoint, reference_network
from weights.whisper.decoder import write_cross, write_decoder

PROMPTS = (5, 3, 7)
STEPS = 6
CAPACITY = 16


class Graphs:
    """The two graphs with their sizes; keeps the past as a caller must."""

    def __init__(self, checkpoint: Checkpoint, folder: Path, open_session, dtype: str) -> None:
        write_cross(checkpoint, folder / "cross.onnx", np.dtype(dtype))
        write_decoder(checkpoint, folder / "decoder.onnx", np.dtype(dtype))
        self.cross, self.decoder = open_session(folder / "cross.onnx"), open_session(folder / "decoder.onnx")
        sizes = checkpoint.dimensions
        self.layers, self.dtype = sizes.n_text_layer, dtype
        self.past_shape = (2 * self.layers, 3, sizes.n_text_head, CAPACITY, sizes.n_text_state // sizes.n_text_head)

    def hear(self, features: np.ndarray) -> dict[str, np.ndarray]:
        names = [output.name for output in self.cross.get_outputs()]
        return dict(zip(names, self.cross.run(names, {"features": features}), strict=True))

    def run(self, cross, past, tokens, lengths, logits_at):
        feeds = {"tokens": tokens, "lengths": np.array(lengths), "logits_at": logits_at, **cross}
        for i in range(self.layers):
            feeds[f"self_k_{i}"], feeds[f"self_v_{i}"] = past[i], past[self.layers + i]
        return self.decoder.run(["logits", "new_kv"], feeds)


@pytest.fixture(scope="module")
def case(small: Checkpoint):
    """(tokens of three rows, features, the package's logits of every position)."""
    rng = np.random.default_rng(3)
    sizes = small.dimensions
    tokens = rng.integers(0, sizes.n_vocab, (3, max(PROMPTS) + STEPS))
    features = rng.standard_normal((3, sizes.n_audio_ctx, sizes.n_audio_state), np.float32)
    with torch.no_grad():
        logits = reference_network(small).decoder(torch.from_numpy(tokens), torch.from_numpy(features)).numpy()
    return tokens, features, logits


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float16", 0.15)])
def test_rows_of_different_age_get_the_package_s_logits(small, case, open_session, tmp_path, dtype, tolerance) -> None:
    tokens, features, expected = case
    graphs = Graphs(small, tmp_path, open_session, dtype)
    cross = graphs.hear(features)
    assert {array.dtype for array in cross.values()} == {np.dtype(dtype)}

    prompts = np.zeros((3, max(PROMPTS)), np.int64)  # shorter rows are padded at their right
    for row, length in enumerate(PROMPTS):
        prompts[row, :length] = tokens[row, :length]
    nothing = np.zeros(graphs.past_shape, dtype)[..., :0, :]
    last = np.array([[0, length - 1] for length in PROMPTS])
    logits, new = graphs.run(cross, nothing, prompts, [0, 0, 0], last)
    for row, length in enumerate(PROMPTS):
        np.testing.assert_allclose(logits[row], expected[row, [0, length - 1]], atol=tolerance)

    past = np.zeros(graphs.past_shape, dtype)
    ages = list(PROMPTS)
    for row, age in enumerate(ages):
        past[:, row, :, :age] = new[:, row, :, :age]
    for _ in range(STEPS):
        step = np.array([[tokens[row, age]] for row, age in enumerate(ages)])
        logits, new = graphs.run(cross, past, step, ages, np.zeros((3, 1), np.int64))
        for row, age in enumerate(ages):
            np.testing.assert_allclose(logits[row, 0], expected[row, age], atol=tolerance)
            past[:, row, :, age] = new[:, row, :, 0]
            ages[row] += 1


def test_what_lies_behind_a_row_s_length_changes_nothing(small, case, open_session, tmp_path) -> None:
    tokens, features, _ = case
    graphs = Graphs(small, tmp_path, open_session, "float32")
    cross = graphs.hear(features)
    rng = np.random.default_rng(1)
    past = rng.standard_normal(graphs.past_shape, np.float32)
    other = past.copy()
    for row, length in enumerate(PROMPTS):
        other[:, row, :, length:] = rng.standard_normal(other[:, row, :, length:].shape)
    step, at = tokens[:, :1], np.zeros((3, 1), np.int64)
    np.testing.assert_array_equal(
        graphs.run(cross, past, step, PROMPTS, at)[0], graphs.run(cross, other, step, PROMPTS, at)[0]
    )


def test_keys_and_values_are_told_apart(small, case, open_session, tmp_path) -> None:
    """An exporter that traces both from one example tensor reads one of them for both, without an error."""
    tokens, features, _ = case
    graphs = Graphs(small, tmp_path, open_session, "float32")
    cross = graphs.hear(features)
    past = np.random.default_rng(1).standard_normal(graphs.past_shape, np.float32)
    swapped = np.concatenate([past[small.dimensions.n_text_layer :], past[: small.dimensions.n_text_layer]])
    step, at = tokens[:, :1], np.zeros((3, 1), np.int64)
    a = graphs.run(cross, past, step, PROMPTS, at)[0]
    b = graphs.run(cross, swapped, step, PROMPTS, at)[0]
    assert np.abs(a - b).max() > 0.1
