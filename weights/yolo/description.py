"""What `yolo.json` says about a `model.onnx`: how to make a picture fit, how to read the answer.

Written by every exporter, read by the builder and by the served code of `yolo_preprocess` and `yolo_postprocess`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

LAYOUTS = {
    "boxes_scores": "[4 + classes, anchors]: cx cy w h in input pixels, then one score per class (YOLOv8, YOLO11)",
    "boxes_scores_transposed": "[anchors, 4 + classes]: the same, one row per anchor",
    "boxes_objectness_scores": "[anchors, 5 + classes]: cx cy w h, objectness, one score per class (YOLOv5, YOLOv7)",
    "detections": "[n, 6]: x1 y1 x2 y2 in input pixels, score, class; NMS is done inside (YOLOv10, YOLO26, nms=True)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class YoloDescription:
    """The content of `yolo.json`.

    Attributes:
        source: Where the network comes from, for people.
        input: Name of the ONNX input; RGB, [batch, 3, height, width], 0 to 255 as TYPE_UINT8, else 0 to 1.
        output: Name of the ONNX output.
        data_type: Of the input, in Triton's words: TYPE_UINT8, TYPE_FP32 or TYPE_FP16.
        output_data_type: Of the output, likewise.
        height: Rows of the picture the network takes.
        width: Columns of it.
        batch: None when the file takes any batch; otherwise the only batch it takes.
        output_shape: Of the output for one picture, without the batch dimension.
        layout: A key of `LAYOUTS`; `boxes_best` where slim.py left the best class alone.
        classes: How many class names there are.
    """

    source: str
    input: str
    output: str
    data_type: str
    output_data_type: str
    height: int
    width: int
    batch: int | None
    output_shape: tuple[int, ...]
    layout: str
    classes: int


def write_description(out: Path, description: YoloDescription, labels: Sequence[str]) -> None:
    """Write `yolo.json` and `labels.txt` (one class name per line, the class number is the line) into `out`."""
    (out / "yolo.json").write_text(json.dumps(asdict(description), indent=1) + "\n", encoding="utf-8")
    lines = [" ".join(label.split()) for label in labels]
    (out / "labels.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
