"""Whisper: samples to log-mel windows, windows to audio features, features to text.

In: AUDIO float32 [n], mono, 16 kHz, -1 to 1. Out: TRANSCRIPT, SEGMENTS and DETECTED_LANGUAGE, strings.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.backends.onnx import gpu_batching, onnx_model
from builder.backends.python import python_model
from builder.errors import DeclarationError
from builder.model import Artifact, Model
from builder.served import code_of, export_folder
from builder.tensors import did_you_mean

FRAMES = 3000
POSITIONS = 1500
BATCH = 8
# What a usual request brings, for sums made beforehand: half a minute of samples; rows and tokens of the decoder.
HALF_A_MINUTE = 480_000
SLOTS = 8
LONGEST_TEXT = 448

# n_mels and n_audio_state of the published checkpoints
SIZES = {
    "tiny": (80, 384),
    "base": (80, 512),
    "small": (80, 768),
    "medium": (80, 1024),
    "large-v1": (80, 1280),
    "large-v2": (80, 1280),
    "large-v3": (128, 1280),
    "large": (128, 1280),
    "large-v3-turbo": (128, 1280),
    "turbo": (128, 1280),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Whisper:
    """The three models of one Whisper checkpoint."""

    features: Model
    encoder: Model
    decoder: Model


def whisper(
    checkpoint: str | Path = "tiny.en", *, dimensions: tuple[int, int] | None = None, streams: bool = False
) -> Whisper:
    """The models of a Whisper checkpoint.

    Args:
        checkpoint: a size (`tiny.en`, `base`, `large-v3`...), or the folder of an export.
        dimensions: mel bins and width of the audio features, where they cannot be known from `checkpoint`.
        streams: whether the decoder gives segments as soon as they are done. It is then a model of another name, and
            decoupled: it loads the checkpoint's text half once more where the plain one is served beside it.

    Raises:
        DeclarationError: the dimensions cannot be known.
    """
    export = export_folder(checkpoint, "whisper-")
    n_mels, state = dimensions or _dimensions(str(checkpoint), export)
    window = f"FP32 [-1, {n_mels}, {FRAMES}]"
    usual = {"MEL": [n_mels, FRAMES], "SPANS": [1, 2], "MODE": [5], "LANGUAGE": [2], "TASK": [10]}
    shared = [f"MEL FP32 [{n_mels}, -1]", "SPANS INT32 [-1, 2]"]
    policy: dict[str, Any] = {"model_transaction_policy": {"decoupled": True}} if streams else {}
    return Whisper(
        features=python_model(
            "whisper_features",
            code=code_of("whisper_features"),
            input=["AUDIO FP32 [-1]", "MODE? STRING [1]"],
            output=[f"WINDOWS {window}", *shared],
            parameters={"encoder_batch_size": str(BATCH)},
            usual={"AUDIO": [HALF_A_MINUTE], "WINDOWS": [1, n_mels, FRAMES], **usual},
        ),
        encoder=_encoder(export, n_mels, state),
        decoder=python_model(
            "whisper_decoder_stream" if streams else "whisper_decoder",
            code=code_of("whisper_decoder"),
            input=[
                f"FEATURES FP32 [-1, {POSITIONS}, {state}]",
                *shared,
                "LANGUAGE? STRING [1]",
                "TASK? STRING [1]",
                "MODE? STRING [1]",
            ],
            output=["TRANSCRIPT STRING [1]", "SEGMENTS STRING [1]", "DETECTED_LANGUAGE STRING [1]"],
            parameters={"encoder": "whisper_encoder"},
            **policy,
            artifacts=[Artifact(source=export / "*", target="", exclude=("encoder.onnx*", "export.json"))],
            profiles={
                "gpu": {
                    "instance_group": [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}],
                    # its code takes features where they lie, and keeps its caches beside them
                    "parameters": {"FORCE_CPU_ONLY_INPUT_TENSORS": "no"},
                }
            },
            usual={
                **usual,
                "FEATURES": [1, POSITIONS, state],
                **{"TRANSCRIPT": [500], "SEGMENTS": [2000], "DETECTED_LANGUAGE": [6]},
                # the windows that join are computed one by one, right into the rows that the decoder reads
                **{"batch": SLOTS, "cross.onnx:batch": 1, "past": LONGEST_TEXT, "new": 1, "picks": 1},
            },
        ),
    )


def _encoder(export: Path, n_mels: int, state: int) -> Model:
    mel = {"name": "mel", "data_type": "TYPE_FP32", "dims": [n_mels, FRAMES]}
    return onnx_model(
        "whisper_encoder",
        source=export / "encoder.onnx",
        beside=[Artifact(source=export / "encoder.onnx.data", target="encoder.onnx.data", needed=False)],
        max_batch_size=BATCH,
        input=[mel],
        output=[f"features FP32 [{POSITIONS}, {state}]"],
        dynamic_batching={},  # no window on the CPU: while it runs, the next batch gathers
        profiles={"gpu": gpu_batching(BATCH, [mel])},
    )


def _dimensions(checkpoint: str, export: Path) -> tuple[int, int]:
    described = export / "whisper.json"
    if described.is_file():
        sizes = json.loads(described.read_text(encoding="utf-8"))["dimensions"]
        return int(sizes["n_mels"]), int(sizes["n_audio_state"])
    size = checkpoint.split("/")[-1].removesuffix(".en")
    if size in SIZES:
        return SIZES[size]
    raise DeclarationError(
        where="whisper",
        found=f"{checkpoint} is no size of Whisper and no folder with whisper.json{did_you_mean(size, SIZES)}",
        expected=f"one of {', '.join(SIZES)} is needed, or a folder that `tritonkit weights` made",
        fix="Name a size, or run `tritonkit weights --whisper` with the checkpoint first",
    )
