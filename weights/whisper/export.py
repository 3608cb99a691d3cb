"""A Whisper checkpoint to an export folder.

In: a checkpoint file or name. Out: `encoder.onnx`, `cross.onnx`, `decoder.onnx`, `whisper.json`, `whisper.tiktoken`
in the folder given. A graph past 1.5 GB brings its weights in a file of its own beside it (`encoder.onnx.data`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weights.errors import ExportError
from weights.whisper.checkpoint import Checkpoint
from weights.whisper.ctranslate2 import read_ctranslate2
from weights.whisper.decoder import write_cross, write_decoder
from weights.whisper.description import write_description
from weights.whisper.encoder import write_encoder
from weights.whisper.openai import read_openai

DTYPES = ("float32", "float16")


def export_whisper(source: str | Path, out: Path, *, dtype: str = "float32") -> None:
    """Fill the empty folder `out` with a Whisper checkpoint in ONNX.

    Args:
        source: CTranslate2's `model.bin` (or the folder with it), a `.pt` of openai-whisper, or a name it knows.
        out: An empty folder.
        dtype: Of weights, work and caches: `float32`, or `float16` for GPUs. Inputs, features and logits stay float32.

    Raises:
        ExportError: The source is not such a checkpoint.
    """
    write_export(read_checkpoint(source), out, dtype=dtype)


def read_checkpoint(source: str | Path) -> Checkpoint:
    """The checkpoint behind a path or name, by what it is.

    Raises:
        ExportError: It is none that is known here.
    """
    path = Path(source)
    if path.is_dir():
        path = path / "model.bin"
    if path.suffix == ".bin":
        if not path.is_file():
            raise ExportError(f"{path}: no such file. The model.bin of CTranslate2 is expected there.")
        return read_ctranslate2(path)
    return read_openai(source)


def write_export(checkpoint: Checkpoint, out: Path, *, dtype: str = "float32") -> None:
    """Fill the empty folder `out` from a checkpoint already read."""
    if dtype not in DTYPES:
        raise ExportError(f"dtype {dtype!r}: one of {', '.join(DTYPES)} is expected.")
    write_encoder(checkpoint, out / "encoder.onnx", np.dtype(dtype))
    write_cross(checkpoint, out / "cross.onnx", np.dtype(dtype))
    write_decoder(checkpoint, out / "decoder.onnx", np.dtype(dtype))
    write_description(checkpoint, out, np.dtype(dtype))
