"""What a YOLO network answers, as boxes with one score and one class each.

In: the output of one picture, in one of four layouts. Out: `Candidates` above a confidence, in the network's order.

    boxes_scores              [4 + classes, anchors]  cx cy w h, one score per class        YOLOv8, YOLO11
    boxes_scores_transposed   [anchors, 4 + classes]
    boxes_objectness_scores   [anchors, 5 + classes]  cx cy w h, objectness, then scores    YOLOv5, YOLOv7
    detections                [n, 6]                  x1 y1 x2 y2, score, class             NMS inside: YOLOv10, YOLO26
"""

from dataclasses import dataclass

import numpy as np


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

    boxes: np.ndarray
    scores: np.ndarray
    classes: np.ndarray

    def take(self, rows: np.ndarray) -> "Candidates":
        """These rows alone, in this order."""
        return Candidates(boxes=self.boxes[rows], scores=self.scores[rows], classes=self.classes[rows])


@np.errstate(invalid="ignore", over="ignore")  # what is no number is left out below
def candidates_in(predictions: np.ndarray, layout: str, classes: int, confidence: float) -> Candidates:
    """The boxes whose best class scores above `confidence`; rows of padding (score 0) never do.

    Args:
        predictions: float [rows, columns] as in the table above; leading dimensions are batches, the first is taken.

    Raises:
        PredictionError: The shape is not that of the layout.
    """
    while predictions.ndim > 2 and len(predictions):
        predictions = predictions[0]
    _check_shape(predictions, layout, classes)
    predictions = predictions.astype(np.float32, copy=False)
    if layout == "detections":
        return _from_detections(predictions, confidence)
    rows = predictions if layout == "boxes_scores" else predictions.T  # [4 or 5 + classes, anchors]
    if layout == "boxes_objectness_scores":
        return _from_scores(rows[:4], rows[5:] * rows[4:5], confidence)
    return _from_scores(rows[:4], rows[4:], confidence)


def _check_shape(predictions: np.ndarray, layout: str, classes: int) -> None:
    axis, size = {
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


def _from_scores(boxes: np.ndarray, scores: np.ndarray, confidence: float) -> Candidates:
    """From [4, anchors] and [classes, anchors]."""
    sure = np.flatnonzero((scores > confidence).any(axis=0))
    scores = scores[:, sure]
    best = scores.argmax(axis=0)
    centre, half = boxes[:2, sure], boxes[2:, sure] / 2
    corners = np.concatenate((centre - half, centre + half)).T
    return _finite(corners, scores[best, np.arange(len(sure))], best)


def _from_detections(rows: np.ndarray, confidence: float) -> Candidates:
    sure = rows[rows[:, 4] > confidence]
    return _finite(sure[:, :4], sure[:, 4], sure[:, 5])


def _finite(boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> Candidates:
    """Without boxes and scores that are not a number or infinite."""
    kept = np.isfinite(boxes).all(axis=1) & np.isfinite(scores)
    return Candidates(
        boxes=np.ascontiguousarray(boxes[kept]), scores=scores[kept].copy(), classes=classes[kept].astype(np.int32)
    )
