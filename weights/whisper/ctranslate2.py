"""CTranslate2's `model.bin` of a Whisper network as a `Checkpoint`.

In: the file. Out: arrays under openai-whisper's names.

Layout, little endian (binary version 6; a string is u16 length with a trailing NUL, then bytes):

    u32 version | str spec | u32 revision | u32 variables
    variables x { str name | u8 rank | u32 dims[rank] | u8 type | u32 bytes | data }
    u32 aliases | aliases x { str alias | str target }
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from weights.errors import ExportError
from weights.whisper.checkpoint import Checkpoint, Dimensions

VERSION = 6
SPEC = "WhisperSpec"
TYPES = {0: "<f4", 1: "i1", 2: "<i2", 3: "<i4", 4: "<f2"}
_NORMS = {"self_attention": "attn_ln", "attention": "cross_attn_ln", "ffn": "mlp_ln"}
_PARTS = {"self_attention": "attn", "attention": "cross_attn"}


def read_ctranslate2(path: Path) -> Checkpoint:
    """The checkpoint in a CTranslate2 `model.bin`, float16 or float32.

    Raises:
        ExportError: Not such a file, cut short, longer than it says, or quantized.
    """
    variables = read_variables(path)
    floats = {name: array for name, array in variables.items() if array.ndim}
    quantized = [name for name, array in floats.items() if array.dtype.kind != "f" and name.endswith("weight")]
    if quantized:
        raise ExportError(
            f"{path.name}: {quantized[0]} is quantized ({floats[quantized[0]].dtype}). "
            "float16 or float32 weights are expected; convert the checkpoint without quantization."
        )
    arrays = dict(_renamed(floats))
    return Checkpoint(source=path.name, dimensions=_dimensions(variables, arrays), arrays=arrays)


def read_variables(path: Path) -> dict[str, np.ndarray]:
    """Every variable of the file by CTranslate2's name; aliases are left out.

    Raises:
        ExportError: Not such a file, cut short, or longer than it says.
    """
    reader = _Reader(path.name, path.read_bytes())
    version, spec, _ = reader.number("I"), reader.text(), reader.number("I")
    if version != VERSION or spec != SPEC:
        raise ExportError(
            f"{path.name}: binary version {version}, kind {spec!r}. Version {VERSION}, kind {SPEC!r} is expected: "
            "the model.bin of a Whisper network converted by CTranslate2."
        )
    variables = dict(reader.variable() for _ in range(reader.number("I")))
    for _ in range(reader.number("I")):
        reader.text(), reader.text()
    reader.check_end()
    return variables


class _Reader:
    def __init__(self, name: str, data: bytes) -> None:
        self._name, self._data, self._at = name, data, 0

    def take(self, n: int) -> bytes:
        if self._at + n > len(self._data):
            raise ExportError(f"{self._name}: cut short at {len(self._data)} bytes. Fetch the file again.")
        self._at += n
        return self._data[self._at - n : self._at]

    def number(self, kind: str) -> int:
        layout = struct.Struct(f"<{kind}")
        return int(layout.unpack(self.take(layout.size))[0])

    def text(self) -> str:
        return self.take(self.number("H")).rstrip(b"\0").decode("utf-8", errors="replace")

    def variable(self) -> tuple[str, np.ndarray]:
        name = self.text()
        dims = [self.number("I") for _ in range(self.number("B"))]
        kind = self.number("B")
        data = self.take(self.number("I"))
        if kind not in TYPES:
            raise ExportError(f"{self._name}: {name} has number type {kind}. One of {sorted(TYPES)} is expected.")
        return name, np.frombuffer(data, TYPES[kind]).reshape(dims)

    def check_end(self) -> None:
        if self._at != len(self._data):
            raise ExportError(f"{self._name}: {len(self._data) - self._at} bytes after its end. Fetch the file again.")


def _renamed(variables: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """(openai-whisper's name, array) for every array."""
    for name, array in variables.items():
        parts = name.split("/")
        if parts[1].startswith("layer_") and parts[1] != "layer_norm":
            block = f"{parts[0]}.blocks.{parts[1].removeprefix('layer_')}"
            for rest, part in _in_block(parts[2], parts[3:], array):
                yield f"{block}.{rest}", part
        elif parts[1] == "layer_norm":
            yield f"{parts[0]}.{'ln_post' if parts[0] == 'encoder' else 'ln'}.{_norm_part(parts[2])}", array
        elif parts[1] == "position_encodings":
            yield f"{parts[0]}.positional_embedding", array
        elif parts[1] == "embeddings":
            yield "decoder.token_embedding.weight", array
        elif parts[1].startswith("conv"):
            yield ".".join(parts), array


def _in_block(part: str, rest: list[str], array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """(name below the block, array): fused projections are split, and the key's bias (all zero) is dropped."""
    if rest[0] == "layer_norm":
        yield f"{_NORMS[part]}.{_norm_part(rest[1])}", array
        return
    linear, kind = rest
    if part == "ffn":
        yield f"mlp.{'0' if linear == 'linear_0' else '2'}.{kind}", array
        return
    fused = {
        ("self_attention", "linear_0"): ("query", "key", "value"),
        ("self_attention", "linear_1"): ("out",),
        ("attention", "linear_0"): ("query",),
        ("attention", "linear_1"): ("key", "value"),
        ("attention", "linear_2"): ("out",),
    }[part, linear]
    for name, piece in zip(fused, np.split(array, len(fused)), strict=True):
        if (name, kind) != ("key", "bias"):
            yield f"{_PARTS[part]}.{name}.{kind}", piece


def _norm_part(name: str) -> str:
    return {"gamma": "weight", "beta": "bias"}[name]


def _dimensions(variables: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> Dimensions:
    audio, text = arrays["encoder.positional_embedding"].shape, arrays["decoder.positional_embedding"].shape
    return Dimensions(
        n_mels=arrays["encoder.conv1.weight"].shape[1],
        n_audio_ctx=audio[0],
        n_audio_state=audio[1],
        n_audio_head=int(variables["encoder/num_heads"]),
        n_audio_layer=_blocks(arrays, "encoder"),
        n_vocab=arrays["decoder.token_embedding.weight"].shape[0],
        n_text_ctx=text[0],
        n_text_state=text[1],
        n_text_head=int(variables["decoder/num_heads"]),
        n_text_layer=_blocks(arrays, "decoder"),
    )


def _blocks(arrays: Mapping[str, np.ndarray], half: str) -> int:
    return len({name.split(".")[2] for name in arrays if name.startswith(f"{half}.blocks.")})
