"""Samples to log-mel frames, as openai-whisper's `transcribe` computes them.

In: float32 [n], mono, 16 kHz, -1 to 1. Out: float32 [n_mels, frames], one frame for each 10 ms.
Own numpy code: neither torch nor the package is needed to serve. Equal to the package's within 1e-4.
"""

from functools import lru_cache

import numpy as np

SAMPLE_RATE_HZ = 16000
N_FFT = 400
HOP = 160
WINDOW_FRAMES = 3000
LOUDEST = 16.0  # floats may overshoot 1; int16 values passed as floats are in the thousands
_CHUNK_FRAMES = 6000  # bounds the memory for recordings of hours


class InputError(ValueError):
    """An input tensor is not what it should be; the text goes to the client."""


def check_samples(samples: np.ndarray, max_audio_seconds: float) -> None:
    """Raises unless the samples can be transcribed. Silence and noise can.

    Raises:
        InputError: No samples, too many, not finite, or far outside -1 to 1.
    """
    if samples.ndim != 1:
        raise InputError(
            f"AUDIO: shape {list(samples.shape)}; [n] is expected; mix the channels into one and send mono samples"
        )
    if samples.size == 0:
        raise InputError("AUDIO: 0 samples; at least 1 is needed; send mono 16 kHz float32 samples")
    seconds = samples.size / SAMPLE_RATE_HZ
    if seconds > max_audio_seconds:
        raise InputError(
            f"AUDIO: {seconds:.1f} s; at most {max_audio_seconds:g} s are taken here; "
            "cut the recording, or raise the parameter max_audio_seconds of whisper_features"
        )
    if not np.isfinite(samples).all():
        found = "NaN" if np.isnan(samples).any() else "infinity"
        where = int(np.flatnonzero(~np.isfinite(samples))[0])
        raise InputError(
            f"AUDIO: {found} at sample {where}; finite values are expected; check how the audio was decoded"
        )
    loudest = float(max(samples.max(), -samples.min()))
    if loudest > LOUDEST:
        raise InputError(
            f"AUDIO: values up to {loudest:g}; -1 to 1 is expected; divide 16-bit samples by 32768 before sending them"
        )


def log_mel(samples: np.ndarray, n_mels: int) -> np.ndarray:
    """Log-mel frames normalised over the whole recording: float32 [n_mels, len(samples) // 160].

    The package computes them with 30 s of silence behind the recording, which decides the loudest value and the last
    frames; so do we, without computing that silence.
    """
    frames = samples.size // HOP
    reaching = -(-(samples.size + N_FFT // 2) // HOP)  # frames that touch a sample, those behind the end included
    padded = _padded(samples, reaching)
    log = np.empty((n_mels, reaching), np.float32)
    for start in range(0, reaching, _CHUNK_FRAMES):
        stop = min(start + _CHUNK_FRAMES, reaching)
        power = _power(padded[start * HOP : (stop - 1) * HOP + N_FFT])
        np.matmul(mel_filters(n_mels), power.T, out=log[:, start:stop])
    np.maximum(log, 1e-10, out=log)
    np.log10(log, out=log)
    np.maximum(log, max(float(log.max()), -10.0) - 8.0, out=log)
    log += 4.0
    log /= 4.0
    return log[:, :frames]


def windows(mel: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """The spans as the encoder takes them, zeros behind short ones: float32 [n, n_mels, 3000]."""
    out = np.zeros((len(spans), mel.shape[0], WINDOW_FRAMES), np.float32)
    for window, (start, frames) in zip(out, spans, strict=True):
        window[:, :frames] = mel[:, start : start + frames]
    return out


@lru_cache
def mel_filters(n_mels: int) -> np.ndarray:
    """Triangles over the spectrum, evenly spaced on Slaney's mel scale, of equal area: float32 [n_mels, 201]."""
    edges = _mel_to_hz(np.linspace(0.0, _hz_to_mel(SAMPLE_RATE_HZ / 2), n_mels + 2))
    spectrum = np.linspace(0.0, SAMPLE_RATE_HZ / 2, N_FFT // 2 + 1)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising = (spectrum - low) / (middle - low)
    falling = (high - spectrum) / (high - middle)
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return (triangles * 2.0 / (high - low)).astype(np.float32)


_LINEAR_HZ_PER_MEL = 200.0 / 3.0
_BREAK_HZ = 1000.0
_BREAK_MEL = _BREAK_HZ / _LINEAR_HZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27.0


def _hz_to_mel(hz: float) -> float:
    """Slaney's scale: linear below 1 kHz, logarithmic above."""
    if hz < _BREAK_HZ:
        return hz / _LINEAR_HZ_PER_MEL
    return _BREAK_MEL + float(np.log(hz / _BREAK_HZ)) / _LOG_STEP


def _mel_to_hz(mel: np.ndarray) -> np.ndarray:
    above = _BREAK_HZ * np.exp(_LOG_STEP * (mel - _BREAK_MEL))
    return np.where(mel < _BREAK_MEL, mel * _LINEAR_HZ_PER_MEL, above)


def _padded(samples: np.ndarray, frames: int) -> np.ndarray:
    """The samples mirrored at the start and silent behind, so that frame i is [160 i, 160 i + 400)."""
    half = N_FFT // 2
    out = np.zeros((frames - 1) * HOP + N_FFT, np.float32)
    out[half : half + samples.size] = samples
    mirrored = samples[1 : half + 1][::-1]
    out[half - len(mirrored) : half] = mirrored
    return out


def _power(samples: np.ndarray) -> np.ndarray:
    """Power spectrum of overlapping frames: float32 [frames, 201]."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, N_FFT)[::HOP]
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(N_FFT) / N_FFT)
    spectrum = np.fft.rfft(frames * hann)
    return (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
