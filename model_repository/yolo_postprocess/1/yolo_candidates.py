"""What a YOLO network answers, as boxes with one score and one class each.

In: the output of one picture, in one of five layouts, an array of numpy's or a tensor of torch's (where the network
left it on a GPU). Out: `Candidates` above a confidence, in the network's order, of the same library and place.

    boxes_best                [6, anchors]            cx cy w h, best score, its class      any of the next 3, slim
    boxes_scores              [4 + classes, anchors]  cx cy w h, one score per class        YOLOv8, YOLO11
    boxes_scores_transposed   [anchors, 4 + classes]
    boxes_objectness_scores   [anchors, 5 + classes]  cx cy w h, objectness, then scores    YOLOv5, YOLOv7
    detections                [n, 6]                  x1 y1 x2 y2, score, class             NMS inside: YOLOv10, YOLO26
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any  # of numpy, or of torch


def library_of(array: Array) -> Any:
    """The module whose functions take this array: numpy, or torch, which is imported where such a tensor is."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def cast(array: Array, dtype: str) -> Array:
    """The array as `float32` or `int32`, by either library."""
    library = library_of(array)
    kind = getattr(library, dtype)
    return array.astype(kind, copy=False) if library is np else array.to(kind)


class PredictionError(ValueError):
    """An input of yolo_postprocess cannot be used: what was found, what is expected, what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Boxes that the network is sure enough of.

    Attributes:
        boxes: float32 [n, 4], x1 y1 x2 y2 in pixels of the network's input.
        scores: float32 [n], 0 to 1.
        classes: int32 [n].
    """

    boxes: Array
    scores: Array
    classes: Array

    def take(self, rows: Array) -> "Candidates":
        """These rows alone, in this order."""
        return Candidates(boxes=self.boxes[rows], scores=self.scores[rows], classes=self.classes[rows])

    def on_host(self) -> "Candidates":
        """The same as arrays of numpy's."""
        if isinstance(self.boxes, np.ndarray):
            return self
        boxes, scores, classes = (one.cpu().numpy() for one in (self.boxes, self.scores, self.classes))
        return Candidates(boxes=boxes, scores=scores, classes=classes)


@np.errstate(invalid="ignore", over="ignore")  # what is no number is left out below
def candidates_in(predictions: Array, layout: str, classes: int, confidence: float) -> Candidates:
    """The boxes whose best class scores above `confidence`; rows of padding (score 0) never do.

    Args:
        predictions: float [rows, columns] as in the table above; leading dimensions are batches, the first is taken.

    Raises:
        PredictionError: The shape is not that of the layout.
    """
    while predictions.ndim > 2 and len(predictions):
        predictions = predictions[0]
    _check_shape(predictions, layout, classes)
    predictions = cast(predictions, "float32")
    if layout == "detections":
        return _from_detections(predictions, confidence)
    if layout == "boxes_best":
        return _from_best(predictions, confidence)
    rows = predictions if layout == "boxes_scores" else predictions.T  # [4 or 5 + classes, anchors]
    if layout == "boxes_objectness_scores":
        return _from_scores(rows[:4], rows[5:] * rows[4:5], confidence)
    return _from_scores(rows[:4], rows[4:], confidence)


def _check_shape(predictions: Array, layout: str, classes: int) -> None:
    axis, size = {
        "boxes_best": (0, 6),
        "boxes_scores": (0, 4 + classes),
        "boxes_scores_transposed": (1, 4 + classes),
        "boxes_objectness_scores": (1, 5 + classes),
        "detections": (1, 6),
    }[layout]
    if predictions.ndim != 2 or predictions.shape[axis] != size:
        wanted = f"[{size}, anchors]" if axis == 0 else f"[n, {size}]"
        raise PredictionError(
            f"PREDICTIONS: shape {list(predictions.shape)}; {wanted} is expected ({layout}, {classes} classes); "
            "labels.txt and yolo.json must come from the same export as the network"
        )


def _from_scores(boxes: Array, scores: Array, confidence: float) -> Candidates:
    """From [4, anchors] and [classes, anchors]."""
    library = library_of(scores)
    sure = library.any(scores > confidence, axis=0)
    boxes, scores = boxes[:, sure], scores[:, sure]
    return _finite(_corners(boxes), library.amax(scores, axis=0), scores.argmax(axis=0))


def _from_best(rows: Array, confidence: float) -> Candidates:
    sure = rows[:, rows[4] > confidence]
    return _finite(_corners(sure[:4]), sure[4], sure[5])


def _corners(boxes: Array) -> Array:
    """[n, 4], x1 y1 x2 y2, from rows of cx cy w h."""
    centre, half = boxes[:2], boxes[2:] / 2
    return library_of(boxes).concatenate((centre - half, centre + half)).T


def _from_detections(rows: Array, confidence: float) -> Candidates:
    sure = rows[rows[:, 4] > confidence]
    return _finite(sure[:, :4], sure[:, 4], sure[:, 5])


def _finite(boxes: Array, scores: Array, classes: Array) -> Candidates:
    """Without boxes and scores that are not a number or infinite."""
    library = library_of(boxes)
    kept = library.all(library.isfinite(boxes), axis=1) & library.isfinite(scores)
    return Candidates(boxes=boxes[kept], scores=scores[kept], classes=cast(classes[kept], "int32"))
