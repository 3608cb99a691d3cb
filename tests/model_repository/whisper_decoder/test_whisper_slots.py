"""The running batch against openai-whisper's decoder: rows of any age come and go."""

import numpy as np
import pytest
import torch
from whisper_memory import Device
from whisper_slots import Slots
from whisper_small import Served

from weights.whisper.checkpoint import reference_network
from weights.whisper.export import write_export

COUNT = 4


class Reference:
    """What the package's decoder says behind every token of a row."""

    def __init__(self, checkpoint) -> None:
        self._decoder = reference_network(checkpoint).decoder

    def logits(self, tokens: list[int], features: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self._decoder(torch.tensor([tokens]), torch.from_numpy(features[None])).numpy()[0]


class Row:
    """A row's tokens, and the logits that were found behind some of them."""

    def __init__(self, prompt: list[int], features: np.ndarray) -> None:
        self.tokens, self.features = prompt, features
        self.found: dict[int, np.ndarray] = {}

    def check(self, reference: Reference) -> None:
        expected = reference.logits(self.tokens, self.features)
        for position, logits in self.found.items():
            np.testing.assert_allclose(logits, expected[position], atol=1e-4)


def features_of(small, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((small.sizes.n_audio_ctx, small.sizes.n_audio_state), np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_logits_stay_the_package_s_while_rows_come_and_go(english, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference, slots = Reference(english.checkpoint), Slots(english.graphs, english.sizes, COUNT)
    rows: list[Row] = []
    gone: list[Row] = []
    for _ in range(80):
        act = rng.random()
        if act < 0.3 and slots.free:
            row = Row(rng.integers(0, 50000, rng.choice([1, 3, 70])).tolist(), features_of(english, rng))
            slot = slots.join(row.features)
            assert slot == len(rows)
            picks = [0, len(row.tokens) - 1]
            row.found |= dict(zip(picks, slots.prompt(slot, row.tokens, picks), strict=True))
            rows.append(row)
        elif act < 0.4 and rows:
            slot = int(rng.integers(len(rows)))
            slots.leave(slot)
            gone.append(rows[slot])
            rows[slot] = rows[-1]
            rows.pop()
        elif rows:
            step = rng.integers(0, 50000, len(rows)).tolist()
            for row, token, logits in zip(rows, step, slots.step(step), strict=True):
                row.found[len(row.tokens)] = logits
                row.tokens.append(token)
    assert slots.used == len(rows)
    for row in rows + gone:
        row.check(reference)
    assert sum(len(row.found) for row in rows + gone) > 60


def test_a_row_may_fill_the_whole_context_and_room_is_given_back_after_it(english) -> None:
    rng = np.random.default_rng(0)
    slots = Slots(english.graphs, english.sizes, 2)
    long, short = features_of(english, rng), features_of(english, rng)
    tokens = rng.integers(0, 50000, 448).tolist()
    slots.prompt(slots.join(long), tokens[:440], [439])
    for token in tokens[440:]:
        logits = slots.step([token])
    expected = Reference(english.checkpoint).logits(tokens, long)[-1]
    np.testing.assert_allclose(logits[0], expected, atol=1e-4)
    full = slots._past.nbytes
    slots.leave(0)
    slots.prompt(slots.join(short), [1, 2], [1])
    np.testing.assert_allclose(
        slots.step([3])[0], Reference(english.checkpoint).logits([1, 2, 3], short)[-1], atol=1e-4
    )
    assert slots._past.nbytes * 4 <= full


def test_a_second_prompt_replaces_the_first(multilingual) -> None:
    rng = np.random.default_rng(0)
    slots, features = Slots(multilingual.graphs, multilingual.sizes, 1), features_of(multilingual, rng)
    slot = slots.join(features)
    slots.prompt(slot, [5], [0])
    slots.prompt(slot, [6, 7], [1])
    expected = Reference(multilingual.checkpoint).logits([6, 7, 8], features)[-1]
    np.testing.assert_allclose(slots.step([8])[0], expected, atol=1e-4)


def test_a_gpu_is_refused_where_onnx_runtime_knows_none(english) -> None:
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime knows GPUs")
    with pytest.raises(RuntimeError, match="KIND_GPU.*install onnxruntime-gpu, or use KIND_CPU"):
        Device("cuda:0")


def test_a_float16_export_keeps_float16_caches_and_nearly_the_package_s_logits(english, tmp_path) -> None:
    write_export(english.checkpoint, tmp_path, dtype="float16")
    served = Served(tmp_path)
    rng = np.random.default_rng(0)
    slots, features = Slots(served.graphs, served.sizes, 2), features_of(served, rng)
    other = slots.join(features_of(served, rng))
    slots.prompt(other, [1], [0])
    slots.prompt(slots.join(features), [5, 6], [1])
    logits = slots.step([2, 7])[1]
    assert (slots._past.dtype, slots._cross.dtype, logits.dtype) == (np.float16, np.float16, np.float32)
    expected = Reference(english.checkpoint).logits([5, 6, 7], features)[-1]
    np.testing.assert_allclose(logits, expected, atol=0.15)
    assert np.abs(logits - expected).max() > 1e-4  # or it would not be float16
