import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from clients.audio import load_samples
from clients.errors import ArrayError


def tone(rate_hz: int, seconds: float = 1.0, pitch_hz: float = 440.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * pitch_hz * np.arange(int(rate_hz * seconds)) / rate_hz)).astype(np.float32)


def packed(samples: np.ndarray, rate_hz: int, kind: str, **options: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format=kind, **options)
    return file.getvalue()


def pitch_hz(samples: np.ndarray) -> float:
    return float(np.argmax(np.abs(np.fft.rfft(samples))) * 16000 / len(samples))


def test_float_samples_at_16_khz_pass_as_they_are() -> None:
    samples = tone(16000)
    assert np.array_equal(load_samples(samples), samples)


def test_int16_is_scaled_to_one() -> None:
    samples = load_samples(np.array([-32768, 0, 16384], dtype=np.int16))
    assert (samples.dtype, samples.tolist()) == (np.float32, [-1.0, 0.0, 0.5])


def test_channels_are_mixed() -> None:
    assert load_samples(np.array([[1.0, 0.0], [0.5, 0.5]])).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("rate_hz", [8000, 22050, 44100, 48000])
def test_an_array_of_another_rate_is_resampled_without_moving_its_pitch(rate_hz: int) -> None:
    samples = load_samples(tone(rate_hz), sample_rate_hz=rate_hz)
    assert abs(len(samples) - 16000) <= 1
    assert pitch_hz(samples) == pytest.approx(440, abs=1)
    assert np.abs(samples).max() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "MP3", "OGG"])
@pytest.mark.parametrize("as_path", [True, False])
def test_files_of_common_formats_are_read_from_a_path_and_from_bytes(kind: str, as_path: bool, tmp_path: Path) -> None:
    data = packed(np.stack([tone(44100, 2.0)] * 2, axis=1), 44100, kind)
    path = tmp_path / "speech"
    path.write_bytes(data)
    samples = load_samples(path if as_path else data)
    assert abs(len(samples) - 32000) < 3000  # mp3 and ogg pad
    assert pitch_hz(samples[:32000]) == pytest.approx(440, abs=1)


def test_a_file_read_in_blocks_is_as_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed(tone(44100), 44100, "WAV", subtype="FLOAT")
    whole = load_samples(data)
    monkeypatch.setattr("clients.audio.BLOCK_FRAMES", 1000)
    assert np.allclose(load_samples(data), whole, atol=1e-6)


def test_a_file_without_samples_gives_none_so_that_the_server_can_answer() -> None:
    assert load_samples(packed(np.zeros(0, np.float32), 44100, "WAV")).shape == (0,)
    assert load_samples(np.zeros(0, np.float32)).shape == (0,)


def test_nan_is_left_for_the_server_to_refuse() -> None:
    assert np.isnan(load_samples(np.array([np.nan], dtype=np.float32))).all()


@pytest.mark.parametrize("data", [b"", b"not sound", packed(tone(16000), 16000, "WAV")[:30]])
def test_what_is_no_sound_file_is_named_with_a_way_out(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    path.write_bytes(data)
    with pytest.raises(ArrayError, match=r"speech\.wav: no sound file: .*ffmpeg"):
        load_samples(path)
    with pytest.raises(ArrayError, match="AUDIO: no sound file"):
        load_samples(data)


def test_a_missing_file_is_the_usual_error() -> None:
    with pytest.raises(FileNotFoundError):
        load_samples("missing.wav")


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(3, np.int32), "dtype int32"),
        (np.zeros(3, np.uint8), "dtype uint8"),
        (np.array(["x"]), "dtype <U1"),
        (np.zeros((2, 16000), np.float32), r"shape \[2, 16000\].*Transpose"),
        (np.zeros((2, 0), np.float32), "shape"),
        (np.zeros((2, 2, 2), np.float32), "shape"),
        ([0.0, 0.1], "a list"),
    ],
)
def test_an_array_whose_meaning_would_be_a_guess_is_refused(array: np.ndarray, words: str) -> None:
    with pytest.raises(ArrayError, match=words):
        load_samples(array)


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(ArrayError, match="sample_rate_hz 0"):
        load_samples(np.zeros(3, np.float32), sample_rate_hz=0)
