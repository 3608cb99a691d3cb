"""Windows and segments against the package's `transcribe`, whose decoder is replaced by one that says random things."""

import types

import numpy as np
import pytest
import torch
import whisper
import whisper_track
from whisper.decoding import DecodingResult
from whisper_track import Decoded, Track, cut, cut_for_detection

from weights.whisper.description import tokenizer_of

SECONDS = 100


class Script:
    """Says one random thing after the other, the same ones for the same seed."""

    def __init__(self, seed: int, tokens) -> None:
        self.rng, self.tokens = np.random.default_rng(seed), tokens

    def say(self) -> Decoded:
        rng, begin = self.rng, self.tokens.timestamp_begin
        said: list[int] = [begin]
        at = int(rng.integers(0, 30))
        for _ in range(rng.integers(0, 4)):
            at += int(rng.integers(1, 400))
            words = rng.integers(220, 50000, rng.integers(0, 5)).tolist()
            said += [*words, begin + at, *([begin + at] if rng.random() < 0.8 else [])]
        if rng.random() < 0.4:
            said += rng.integers(220, 50000, 3).tolist()
        return Decoded(
            tokens=tuple(said), avg_logprob=float(rng.uniform(-2, 0)), no_speech_prob=float(rng.choice([0.1, 0.7]))
        )


def package_s_transcript(script: Script, dimensions, **options) -> tuple[dict, list[list[int]]]:
    """(what `transcribe` returns, the prompt of every window)."""
    prompts = []

    def decode(mel, options):
        said = script.say()
        prompts.append(list(options.prompt))
        return DecodingResult(
            audio_features=mel, language="en", tokens=list(said.tokens), avg_logprob=said.avg_logprob,
            no_speech_prob=said.no_speech_prob, temperature=0.0, compression_ratio=1.0,
        )  # fmt: skip

    stand_in = types.SimpleNamespace(
        dims=dimensions, device=torch.device("cpu"), is_multilingual=False, num_languages=99, decode=decode
    )
    audio = np.zeros(SECONDS * 16000 + 1234, np.float32)
    return whisper.transcribe(stand_in, audio, temperature=0, fp16=False, language="en", **options), prompts


@pytest.fixture(scope="module")
def dimensions(english):
    tokenizer_of(english.dimensions)
    return types.SimpleNamespace(n_mels=80, n_audio_ctx=1500, n_text_ctx=448)


def as_tuples(segments) -> list[tuple]:
    return [(round(s["start"], 2), round(s["end"], 2), s["text"], list(s["tokens"])) for s in segments if s["tokens"]]


@pytest.mark.parametrize("seed", range(12))
def test_windows_prompts_and_segments_are_the_package_s(english, dimensions, seed: int) -> None:
    """WHI-03: with the offset of each window in its times."""
    expected, prompts = package_s_transcript(Script(seed, english.tokens), dimensions)

    script = Script(seed, english.tokens)
    track = Track(english.tokens, english.vocabulary, start=0, end=SECONDS * 100 + 7, is_prompted=True)
    told = []
    while not track.is_done:
        window = track.next_window()
        told.append(list(window.before))
        track.take(window, script.say())
    assert told == prompts
    assert as_tuples([segment.as_json() for segment in track.segments]) == as_tuples(expected["segments"])
    assert len(told) > 3


@pytest.mark.parametrize("seed", range(6))
def test_tracks_of_spans_are_the_package_s_clips_without_prompts(
    english, dimensions, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whisper_track, "SHORTEST_REST_FRAMES", 0)
    spans = [(0, 2500), (2500, 2999), (5499, 3000), (8499, 1508)]
    clips = [second for start, frames in spans for second in (start / 100, (start + frames) / 100)]
    script = Script(seed, english.tokens)
    options = {"clip_timestamps": clips, "condition_on_previous_text": False}
    expected, prompts = package_s_transcript(script, dimensions, **options)

    script = Script(seed, english.tokens)
    segments = []
    for start, frames in spans:
        track = Track(english.tokens, english.vocabulary, start=start, end=start + frames, is_prompted=False)
        while not track.is_done:
            window = track.next_window()
            assert window.start + window.frames <= start + frames
            track.take(window, script.say())
        segments += [segment.as_json() for segment in track.segments]
    assert not any(prompts)
    assert as_tuples(segments) == as_tuples(expected["segments"])


def test_the_last_second_of_a_span_is_not_asked_again(english) -> None:
    begin = english.tokens.timestamp_begin
    said = Decoded(tokens=(begin, 400, begin + 450, begin + 450), avg_logprob=-0.1, no_speech_prob=0.1)
    for end, is_prompted, is_done in ((1000, False, True), (1001, False, False), (1000, True, False)):
        track = Track(english.tokens, english.vocabulary, start=0, end=end, is_prompted=is_prompted)
        track.take(track.next_window(), said)
        assert track.is_done is is_done, (end, is_prompted)


def test_a_short_window_has_zeros_behind_it() -> None:
    mel = np.arange(2 * 50, dtype=np.float32).reshape(2, 50) + 1
    window = cut(mel, 40, 10)
    np.testing.assert_array_equal(window[:, :10], mel[:, 40:])
    assert window.shape == (2, 3000) and not window[:, 10:].any()


def test_the_window_for_detection_is_the_package_s_but_for_two_frames() -> None:
    import whisper_audio

    samples = (0.1 * np.random.default_rng(0).standard_normal(16000 * 3)).astype(np.float32)
    expected = whisper.log_mel_spectrogram(samples, 80, padding=480000)[:, :3000].numpy()
    found = cut_for_detection(whisper_audio.log_mel(samples, 80))
    frames = np.flatnonzero(np.abs(found - expected).max(axis=0) > 1e-4)
    assert set(frames) <= {300, 301}
