"""YOLO: a picture file to pixels that fit, pixels to predictions, predictions to boxes with labels.

In: IMAGE uint8 [n], the bytes of a picture file. Out: BOXES float32 [n, 4], pixels of the original image, x1 y1 x2 y2;
SCORES float32 [n]; CLASSES int32 [n]; LABELS string [n]; DETECTIONS, all of it as one JSON string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.backends.onnx import gpu_batching, onnx_model, read_tensors
from builder.backends.python import python_model
from builder.errors import DeclarationError
from builder.model import Artifact, Model
from builder.served import code_of, export_folder

DEFAULT = "yolov3-tiny"
BATCH = 8
ON_GPU = [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}]
# On a GPU: the pixels of the largest picture that is scaled there (exact_pixels, and half as much again on the way),
# and the overlaps of a block of boxes.
PICTURE_BYTES = 3 * 40_000_000 * 3 // 2
BOXES_BYTES = 32 << 20
_IMAGES: dict[str, Any] = {"name": "images", "data_type": "TYPE_UINT8", "dims": [3, 416, 416]}
_PREDICTIONS: dict[str, Any] = {"name": "output0", "data_type": "TYPE_FP32", "dims": [6, 2535]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Yolo:
    """The three models of one detection network; `images` and `predictions` are the network's own tensor names."""

    preprocess: Model
    network: Model
    postprocess: Model
    images: str
    predictions: str


def yolo(checkpoint: str | Path = DEFAULT) -> Yolo:
    """The models of a detection network.

    Args:
        checkpoint: the packaged network's name, or the folder of an export (`model.onnx`, `yolo.json`, `labels.txt`).

    Raises:
        DeclarationError: it is another name than the packaged one, or no such folder.
    """
    export = export_folder(checkpoint)
    images, predictions, batch = (
        (_IMAGES, _PREDICTIONS, BATCH) if str(checkpoint) == DEFAULT else _read(str(checkpoint), export)
    )
    described = [Artifact(source=export / "yolo.json", target="yolo.json")]
    return Yolo(
        images=images["name"],
        predictions=predictions["name"],
        preprocess=python_model(
            "yolo_preprocess",
            code=code_of("yolo_preprocess"),
            input=["IMAGE UINT8 [-1]", "AFTER? STRING [1]"],
            output=[{**images, "name": "IMAGES"}, "GEOMETRY FP32 [5]"],
            artifacts=described,
            profiles={"gpu": {"instance_group": ON_GPU, "parameters": {"device_outputs": "IMAGES"}}},
            usual={"IMAGE": [1_000_000]},
            device_bytes=PICTURE_BYTES,
            serves_neighbours=True,
        ),
        network=onnx_model(
            "yolo",
            source=export / "model.onnx",
            beside=[Artifact(source=export / "model.onnx.data", target="model.onnx.data", needed=False)],
            max_batch_size=batch,
            input=[images],
            output=[predictions],
            # no window on the CPU: while the network runs, the next batch gathers
            **({"dynamic_batching": {}} if batch else {}),
            profiles={"gpu": gpu_batching(batch, [images]) if batch else {}},
        ),
        postprocess=python_model(
            "yolo_postprocess",
            code=code_of("yolo_postprocess"),
            input=[
                {**predictions, "name": "PREDICTIONS", "dims": [-1 for _ in predictions["dims"]]},
                "GEOMETRY FP32 [5]",
                "CONFIDENCE? FP32 [1]",
                "IOU? FP32 [1]",
            ],
            output=[
                "BOXES FP32 [-1, 4]",
                "SCORES FP32 [-1]",
                "CLASSES INT32 [-1]",
                "LABELS STRING [-1]",
                "DETECTIONS STRING [1]",
            ],
            artifacts=[*described, Artifact(source=export / "labels.txt", target="labels.txt")],
            profiles={
                "gpu": {
                    "instance_group": ON_GPU,
                    "parameters": {"FORCE_CPU_ONLY_INPUT_TENSORS": "no", "device_outputs": "none"},
                }
            },
            device_bytes=BOXES_BYTES,
            serves_neighbours=True,
            usual={
                "PREDICTIONS": predictions["dims"],
                **{"BOXES": [20, 4], "SCORES": [20], "CLASSES": [20], "LABELS": [200], "DETECTIONS": [2000]},
            },
        ),
    )


def _read(checkpoint: str, export: Path) -> tuple[Mapping[str, Any], Mapping[str, Any], int]:
    """The network's two tensors and its largest batch, from an export: 0 where the file fixes the batch."""
    if not (export / "yolo.json").is_file():
        raise DeclarationError(
            where="yolo",
            found=f"{checkpoint} is neither {DEFAULT} nor a folder with yolo.json",
            expected="a folder that `tritonkit weights` made is needed",
            fix="Run `tritonkit weights --yolo` with the checkpoint first",
        )
    named = json.loads((export / "yolo.json").read_text(encoding="utf-8"))
    inputs, outputs = read_tensors("yolo", export / "model.onnx")
    images = next(one for one in inputs if one["name"] == named["input"])
    predictions = next(one for one in outputs if one["name"] == named["output"])
    if named["batch"] is not None:
        return images, predictions, 0
    sized = [3, named["height"], named["width"]]
    return {**images, "dims": sized}, {**predictions, "dims": predictions["dims"][1:]}, BATCH
