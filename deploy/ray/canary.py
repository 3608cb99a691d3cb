"""The smallest thing that each pipeline can be asked, to see whether it still answers. Pure."""

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from clients.signature import Signature

# A white PNG of one pixel.
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC")


def smallest(pipeline: str) -> dict[str, Any] | None:
    """Fields for batch/calls.py; None for a model that tritonkit does not know."""
    questions: dict[str, dict[str, Any]] = {
        "transcribe": {"audio": wav()},
        "detect": {"image": PIXEL},
        "assistant": {"question": "?", "max_tokens": 1},
        "llm": {"prompt": "?", "max_tokens": 1},
    }
    return questions.get(pipeline)


def wav(samples: int = 1600, rate_hz: int = 16_000) -> bytes:
    """A tenth of a second of silence as a WAV file."""
    body = bytes(2 * samples)
    rate, bytes_s = rate_hz.to_bytes(4, "little"), (2 * rate_hz).to_bytes(4, "little")
    form = b"fmt " + b"\x10\0\0\0" + b"\x01\0" + b"\x01\0" + rate + bytes_s + b"\x02\0" + b"\x10\0"
    data = b"data" + len(body).to_bytes(4, "little") + body
    return b"RIFF" + (4 + len(form) + len(data)).to_bytes(4, "little") + b"WAVE" + form + data


def zeros(signature: "Signature") -> dict[str, "np.ndarray"]:
    """The smallest inputs of any model, zeros and empty text: those that it needs, or all if it needs none.

    It may well refuse them. That is an answer, too.
    """
    import numpy as np
    from tritonclient.utils import triton_to_np_dtype

    needed = {name: one for name, one in signature.inputs.items() if not one.is_optional} or signature.inputs
    shapes = {name: [1 if size < 0 else size for size in one.dims] for name, one in needed.items()}
    return {
        name: np.full(shapes[name], b"", dtype=object)
        if one.datatype == "BYTES"
        else np.zeros(shapes[name], triton_to_np_dtype(one.datatype))
        for name, one in needed.items()
    }
