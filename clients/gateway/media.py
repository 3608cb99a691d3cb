"""Pictures and recordings inside a request become bytes and samples.

Only what the request itself holds is taken: an address would make the gateway fetch things on a caller's behalf, from
networks that the caller may not see.
"""

import asyncio
import base64
import binascii
import io

import numpy as np

from clients.audio import load_samples
from clients.errors import ArrayError
from clients.gateway.problems import invalid, unsupported

MOST_CHANNELS = 8


def bytes_of_data_url(url: str, param: str) -> bytes:
    """What a `data:` URL holds.

    Raises:
        Problem: another address, or no base64.
    """
    if not url.startswith("data:"):
        raise unsupported(param, "addresses are not fetched; send the file itself as data:image/...;base64,...")
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        raise invalid(param, "no base64 in it", "data:image/...;base64,... is needed")
    return bytes_of_base64(data, param)


def bytes_of_base64(text: str, param: str) -> bytes:
    """What a text in base64 holds."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(param, f"no base64 ({error})", "the bytes of a file in base64 are needed") from error
    if not data:
        raise invalid(param, "empty", "the bytes of a file are needed")
    return data


async def samples_of(data: bytes, longest_s: float, param: str) -> np.ndarray:
    """Samples of a sound file: float32 [n], mono, 16 kHz, -1 to 1.

    Raises:
        Problem: no sound file, or longer than allowed.
    """
    return await asyncio.to_thread(_samples, data, longest_s, param)


def _samples(data: bytes, longest_s: float, param: str) -> np.ndarray:
    check_duration(data, longest_s, param)
    try:
        return load_samples(data)
    except ArrayError as error:
        raise invalid(param, error.found, error.expected, error.advice) from error


def check_duration(data: bytes, longest_s: float, param: str) -> None:
    """Raises Problem for a file that says it is too long, before anything of it is decoded: silence packs well."""
    import soundfile

    try:
        about = soundfile.info(io.BytesIO(data))
    except (soundfile.LibsndfileError, TypeError, ValueError):
        return  # load_samples says what is wrong with it
    if about.duration > longest_s or about.channels > MOST_CHANNELS:
        found = f"{about.duration:,.0f} s in {about.channels} channels"
        raise invalid(param, found, f"{longest_s:,.0f} s in {MOST_CHANNELS} channels are the most that is taken")
