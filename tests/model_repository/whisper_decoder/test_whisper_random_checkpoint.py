"""All three models against `whisper.transcribe`, on a checkpoint of large-v3's kind: 128 mel bins, 100 languages.

Its weights are random, so it says nonsense; but the same nonsense as the package, to the token.
"""

import numpy as np
import pytest
import torch
import whisper
import whisper_track
from whisper_listening import Listener, package_s_tokens, tokens_of
from whisper_small import LARGE_V3, Served, small_dimensions

from weights.whisper.checkpoint import reference_network
from weights.whisper.description import tokenizer_of
from weights.whisper.export import write_export
from weights.whisper.random_weights import random_checkpoint


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """(our served code, the package's network)."""
    torch.set_num_threads(1)
    dimensions = small_dimensions(LARGE_V3, 64, n_audio_ctx=1500, n_mels=128)
    checkpoint = random_checkpoint(dimensions, seed=2)
    folder = tmp_path_factory.mktemp("large-v3-like")
    write_export(checkpoint, folder)
    tokenizer_of(dimensions)
    with Listener(Served(folder)) as listener:
        yield listener, reference_network(checkpoint)


def noise(seconds: float) -> np.ndarray:
    rng = np.random.default_rng(int(seconds * 10))
    samples = rng.standard_normal(int(seconds * 16000)) * np.abs(np.sin(np.arange(int(seconds * 16000)) / 3000))
    return (0.2 * samples).astype(np.float32)


@pytest.mark.parametrize("seconds", [4.0, 31.5])
@pytest.mark.parametrize(("language", "task"), [(None, "transcribe"), ("fr", "translate")])
def test_exact_mode_says_what_the_package_says(both, seconds: float, language: str | None, task: str) -> None:
    listener, network = both
    samples = noise(seconds)
    expected = whisper.transcribe(network, samples, temperature=0, fp16=False, language=language, task=task)
    job = listener.listen(listener.ask_of(samples, language=language, task=task)).result(60)
    assert tokens_of(job) == package_s_tokens(expected)
    assert len(tokens_of(job)) > 5
    assert job.language == expected["language"]
    assert job.transcript() == expected["text"].strip()


def test_fast_mode_is_the_package_on_clips_without_prompts(both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper_track, "SHORTEST_REST_FRAMES", 0)
    listener, network = both
    samples = noise(70.0)
    ask = listener.ask_of(samples, mode="fast", language="de")
    assert len(ask.spans) == 3
    clips = [float(second) for start, frames in ask.spans for second in (start / 100, (start + frames) / 100)]
    expected = whisper.transcribe(
        network, samples, temperature=0, fp16=False, language="de", clip_timestamps=clips,
        condition_on_previous_text=False,
    )  # fmt: skip
    job = listener.listen(ask).result(60)
    assert tokens_of(job) == package_s_tokens(expected)
    assert len(set(tokens_of(job))) > 15
