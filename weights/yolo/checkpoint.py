"""An Ultralytics `.pt` checkpoint to an export folder, by Ultralytics' own exporter in its own environment.

In: a detection checkpoint. Out: `model.onnx` with any batch, `labels.txt`, `yolo.json`.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import onnx

from weights.errors import ExportError
from weights.yolo.description import write_description
from weights.yolo.onnx_file import describe, load_graph

SCRIPT = Path(__file__).with_name("checkpoint_script.py")
OPSET = 18
# Ultralytics' word for where non-maximum suppression happens.
NMS = {"outside": None, "end2end": False, "inside": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointOptions:
    """How to export.

    Attributes:
        image_size: Height and width; None takes the size the checkpoint was trained with.
        half: Weights and arithmetic in float16; input and output stay float32.
        nms: "outside" (yolo_postprocess does it), "end2end" (the head of YOLOv10 and YOLO26 that needs none), or
            "inside" (in the graph).
        confidence: For "inside": boxes below are never given, whatever a request asks for.
        iou: For "inside": overlap above which the weaker box goes.
        max_detections: For "inside" and "end2end": rows of the answer.
        max_batch: For "inside": the largest batch, since the graph repeats NMS for each picture.
    """

    image_size: tuple[int, int] | None = None
    half: bool = False
    nms: str = "outside"
    confidence: float = 0.25
    iou: float = 0.45
    max_detections: int = 300
    max_batch: int = 8


def export_checkpoint(
    checkpoint: Path, out: Path, *, python: Path, options: CheckpointOptions = CheckpointOptions()
) -> None:
    """Fill the empty folder `out` from a checkpoint.

    Args:
        checkpoint: An Ultralytics `.pt` file. Only known classes are unpickled from it.
        out: The empty folder.
        python: Of the Ultralytics environment (`ultralytics_environment`).
        options: How to export.

    Raises:
        ExportError: The file is no Ultralytics detection checkpoint, or the exporter refuses the options.
    """
    if not checkpoint.is_file():
        raise ExportError(f"{checkpoint}: there is no such file. Give the path of an Ultralytics .pt checkpoint.")
    target = out / "model.onnx"
    with tempfile.TemporaryDirectory() as scratch:
        _run_script(checkpoint, target, Path(scratch), _arguments(options), python)
    model = load_graph(target)
    _free_only_batch(model)
    onnx.save_model(model, target)
    description, labels = describe(target, model, None, None, source=f"{checkpoint.name} (Ultralytics)")
    _say_output_shape(model, description.output_shape)
    onnx.save_model(model, target)
    write_description(out, description, labels)


def _arguments(options: CheckpointOptions) -> dict[str, object]:
    if options.nms not in NMS:
        raise ExportError(f"nms '{options.nms}' is not known. One of {', '.join(NMS)} is expected.")
    arguments: dict[str, object] = {"opset": OPSET, "nms": NMS[options.nms], "max_det": options.max_detections}
    if options.image_size is not None:
        arguments["imgsz"] = list(options.image_size)
    if options.half:
        arguments["quantize"] = 16
    if options.nms == "inside":
        arguments |= {"conf": options.confidence, "iou": options.iou, "batch": options.max_batch}
    return arguments


def _run_script(checkpoint: Path, target: Path, scratch: Path, arguments: dict[str, object], python: Path) -> None:
    job = {
        "checkpoint": str(checkpoint.resolve()),
        "target": str(target.resolve()),
        "scratch": str(scratch),
        "arguments": arguments,
    }
    done = subprocess.run(
        [str(python), "-P", str(SCRIPT), json.dumps(job)], capture_output=True, text=True, encoding="utf-8"
    )
    try:
        verdict = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        tail = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise ExportError(
            f"{checkpoint.name}: Ultralytics' exporter ended with {done.returncode} ({' | '.join(tail)}). "
            "Try the same checkpoint with ultralytics alone."
        ) from None
    if refused := verdict.get("refused"):
        raise ExportError(f"{checkpoint.name}: {refused}. An Ultralytics detection checkpoint is expected.")


def _free_only_batch(model: onnx.ModelProto) -> None:
    """Fix height and width, and take out the date, so that the same checkpoint gives the same file."""
    kept = [entry for entry in model.metadata_props if entry.key != "date"]
    height, width = json.loads(next(entry.value for entry in kept if entry.key == "imgsz"))
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[2].dim_value, dims[3].dim_value = height, width


def _say_output_shape(model: onnx.ModelProto, shape: tuple[int, ...]) -> None:
    dims = model.graph.output[0].type.tensor_type.shape.dim
    for dim, size in zip(dims[1:], shape, strict=True):
        dim.dim_value = size
