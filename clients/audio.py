"""Sound in any common form comes in; float32 [n], mono, 16 kHz, -1 to 1 goes out, as the pipelines take it.

Values are not judged here: silence, NaN or no samples at all are for the server to answer, so that every client is
told the same. What is refused is what can't be turned into such samples without guessing.
"""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from clients.defaults import SAMPLE_RATE_HZ
from clients.errors import ArrayError

BLOCK_FRAMES = 2**20
MOST_CHANNELS = 32  # more columns than this are samples, in an array laid out the other way
Audio = np.ndarray | str | Path | bytes

AS_FILE = "a sound file that libsndfile reads (wav, flac, mp3, ogg, ...) is needed"


def load_samples(source: Audio, sample_rate_hz: int = SAMPLE_RATE_HZ) -> np.ndarray:
    """Samples: float32 [n], mono, 16 kHz, -1 to 1.

    Args:
        source: a path, the bytes of a file, or an array [n] or [n, channels] of float32, float64 or int16.
        sample_rate_hz: the rate of an array. A file says its own.

    Raises:
        ArrayError: not sound, or an array whose scale or layout would have to be guessed.
    """
    if isinstance(source, np.ndarray):
        return _at_16_khz(_mono(_scaled(source)), sample_rate_hz)
    if not isinstance(source, str | Path | bytes):
        raise ArrayError("AUDIO", f"a {type(source).__name__}", "a path, the bytes of a file or an array is needed")
    return _from_file(source)


def _from_file(source: str | Path | bytes) -> np.ndarray:
    # In blocks: three hours of stereo at 44.1 kHz are 3.8 GB as float32, and 0.7 GB as what is sent.
    import soundfile

    named = "AUDIO" if isinstance(source, bytes) else str(source)
    with io.BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb") as file:
        try:
            with soundfile.SoundFile(file) as sound:
                return _joined(sound.blocks(BLOCK_FRAMES, dtype="float32", always_2d=True), sound.samplerate)
        except soundfile.LibsndfileError as error:
            advice = "Convert it first, such as with: ffmpeg -i IN -ar 16000 -ac 1 OUT.wav"
            raise ArrayError(named, f"no sound file: {error.error_string}", AS_FILE, advice) from error


def _joined(blocks: Iterator[np.ndarray], rate_hz: int) -> np.ndarray:
    mono = (_mono(block) for block in blocks)
    if rate_hz == SAMPLE_RATE_HZ:
        pieces = list(mono)
    else:
        import soxr

        stream = soxr.ResampleStream(rate_hz, SAMPLE_RATE_HZ, 1, dtype="float32")
        pieces = [stream.resample_chunk(block) for block in mono]
        pieces.append(stream.resample_chunk(np.zeros(0, dtype=np.float32), last=True))
    return np.concatenate([np.zeros(0, dtype=np.float32), *pieces])


def _scaled(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.int16:
        return array.astype(np.float32) / 32768
    if array.dtype in (np.float32, np.float64):
        return array.astype(np.float32)
    advice = "Divide by the full scale first, such as samples / 2**31 for int32."
    raise ArrayError("AUDIO", f"dtype {array.dtype}", "float32 or float64 of -1 to 1, or int16, is needed", advice)


def _mono(array: np.ndarray) -> np.ndarray:
    if array.ndim == 1:
        return array
    if array.ndim != 2 or array.shape[1] == 0 or array.shape[1] > MOST_CHANNELS:
        advice = "Transpose an array that is [channels, n]."
        raise ArrayError("AUDIO", f"shape {list(array.shape)}", "[n] or [n, channels] is needed", advice)
    return array.mean(axis=1, dtype=np.float32)


def _at_16_khz(samples: np.ndarray, rate_hz: int) -> np.ndarray:
    if rate_hz == SAMPLE_RATE_HZ:
        return samples
    if rate_hz <= 0:
        raise ArrayError("AUDIO", f"sample_rate_hz {rate_hz}", "a positive number of samples a second is needed")
    import soxr

    return soxr.resample(samples, rate_hz, SAMPLE_RATE_HZ)
