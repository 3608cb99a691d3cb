"""Log-mel frames against openai-whisper's."""

import numpy as np
import pytest
import whisper
import whisper_audio
from whisper_audio import InputError, check_samples, log_mel, mel_filters, windows


@pytest.mark.parametrize("n_mels", [80, 128])
def test_the_filter_bank_is_the_package_s(n_mels: int) -> None:
    np.testing.assert_allclose(mel_filters(n_mels), whisper.audio.mel_filters("cpu", n_mels).numpy(), atol=1e-8)


def sounds(samples: int) -> np.ndarray:
    """Something between silence and noise, louder and softer in turns."""
    rng = np.random.default_rng(samples)
    return (rng.standard_normal(samples) * np.abs(np.sin(np.arange(samples) / 9000)) * 0.2).astype(np.float32)


@pytest.mark.parametrize("n_mels", [80, 128])
@pytest.mark.parametrize("samples", [1, 159, 160, 201, 400, 16000, 16000 * 30, 16000 * 62 + 7280])
def test_frames_are_the_package_s(samples: int, n_mels: int) -> None:
    """WHI-03 and WHI-04: 62.455 s are 6245 frames, and the numbers are those of the reference."""
    audio = sounds(samples)
    expected = whisper.log_mel_spectrogram(audio, n_mels, padding=480000).numpy()[:, :-3000]
    found = log_mel(audio, n_mels)
    assert found.dtype == np.float32
    assert found.shape == expected.shape == (n_mels, samples // 160)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("audio", [np.zeros(20000, np.float32), np.full(20000, 1e-7, np.float32)])
def test_silence_is_the_package_s(audio: np.ndarray) -> None:
    expected = whisper.log_mel_spectrogram(audio, 80, padding=480000).numpy()[:, :-3000]
    np.testing.assert_allclose(log_mel(audio, 80), expected, atol=1e-4)


def test_computing_in_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    audio = sounds(16000 * 20)
    whole = log_mel(audio, 80)
    monkeypatch.setattr(whisper_audio, "_CHUNK_FRAMES", 77)
    np.testing.assert_allclose(log_mel(audio, 80), whole, atol=1e-6)


def test_windows_hold_the_spans_and_zeros_behind_them() -> None:
    """WHI-03: a short window is filled up with zeros."""
    mel = np.arange(2 * 3500, dtype=np.float32).reshape(2, 3500) + 1
    out = windows(mel, np.array([[0, 3000], [3000, 500]]))
    assert out.shape == (2, 2, 3000)
    np.testing.assert_array_equal(out[0], mel[:, :3000])
    np.testing.assert_array_equal(out[1, :, :500], mel[:, 3000:])
    assert not out[1, :, 500:].any()


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(0, np.float32), "AUDIO: 0 samples; at least 1 is needed; send mono 16 kHz float32 samples"),
        (np.zeros((2, 9), np.float32), r"AUDIO: shape \[2, 9\]; \[n\] is expected; mix the channels"),
        (np.array([0, 0, np.nan], np.float32), "AUDIO: NaN at sample 2; finite values are expected"),
        (np.array([0, -np.inf], np.float32), "AUDIO: infinity at sample 1"),
        (np.array([0, -9000.0], np.float32), "AUDIO: values up to 9000; -1 to 1 is expected; divide 16-bit samples"),
        (np.zeros(16000 * 3 + 1600, np.float32), "AUDIO: 3.1 s; at most 3 s are taken here; cut the recording"),
    ],
)
def test_what_cannot_be_transcribed_is_an_error_that_says_why(samples: np.ndarray, message: str) -> None:
    """WHI-03: no samples are an error; too many are refused, never cut."""
    with pytest.raises(InputError, match=message):
        check_samples(samples, max_audio_seconds=3)


@pytest.mark.parametrize("samples", [np.zeros(9, np.float32), sounds(16000), np.full(9, -1.5, np.float32)])
def test_silence_noise_and_overshoot_are_taken(samples: np.ndarray) -> None:
    check_samples(samples, max_audio_seconds=3)
