"""The pipeline `detect`: an image becomes its request, its response becomes Detections."""

from typing import Any

from clients.arrays import need, number, read_json, tensor
from clients.image import Image, load_image
from clients.tensors import Request, Response, Tensor
from clients.values import Detection, Detections

MODEL = "detect"


def detect_request(image: Image, *, confidence: float | None = None, iou: float | None = None) -> Request:
    """The request for one picture; `image` as load_image takes it."""
    return Request(model=MODEL, tensors=(tensor("IMAGE", load_image(image)), *box_options(confidence, iou)))


def box_options(confidence: float | None, iou: float | None) -> tuple[Tensor, ...]:
    """The tensors of the thresholds that were given; the model has its own for the others."""
    thresholds = {"CONFIDENCE": confidence, "IOU": iou}
    return tuple(number(name, value) for name, value in thresholds.items() if value is not None)


def read_detections(response: Response) -> Detections:
    """The detections that a response of `detect` holds."""
    return as_detections(need(read_json(response, "DETECTIONS"), MODEL, "DETECTIONS"))


def as_detections(found: dict[str, Any]) -> Detections:
    """The detections in the JSON document that the models pass on."""
    items = tuple(_detection(one) for one in found["detections"])
    return Detections(width=int(found["width"]), height=int(found["height"]), items=items)


def _detection(found: dict[str, Any]) -> Detection:
    left, top, right, bottom = (float(edge) for edge in found["box"])
    return Detection(label=found["label"], score=float(found["score"]), box=(left, top, right, bottom))
