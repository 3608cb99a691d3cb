"""Pipeline `detect`: IMAGE -> BOXES, SCORES, CLASSES, LABELS, DETECTIONS."""

from __future__ import annotations

from builder.models.yolo import Yolo
from builder.models.yolo import yolo as yolo_of
from builder.pipeline import Pipeline, Step


def detect(yolo: str = "yolov3-tiny") -> Pipeline:
    """The pipeline over a detection network."""
    return Pipeline(
        name="detect",
        inputs="IMAGE CONFIDENCE? IOU?",
        outputs="BOXES SCORES CLASSES LABELS DETECTIONS",
        steps=look(yolo_of(yolo), "BOXES SCORES CLASSES LABELS DETECTIONS"),
    )


def look(models: Yolo, outputs: str, *, after: str = "") -> list[Step]:
    """The steps from IMAGE to some of the outputs of the last one, begun when the ensemble tensor `after` is there."""
    return [
        Step(
            model=models.preprocess,
            input_map=f"IMAGE AFTER={after}" if after else "IMAGE",
            output_map="IMAGES=pixels GEOMETRY=geometry",
        ),
        Step(
            model=models.network,
            input_map={models.images: "pixels"},
            output_map={models.predictions: "predictions"},
        ),
        Step(
            model=models.postprocess,
            input_map="PREDICTIONS=predictions GEOMETRY=geometry CONFIDENCE IOU",
            output_map=outputs,
        ),
    ]
