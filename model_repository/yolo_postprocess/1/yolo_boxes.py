"""From candidates to detections: one box per thing, in pixels of the original picture.

In: `Candidates` in pixels of the network's input, and the geometry of the letterbox. Out: fewer of them, moved back.
"""

import numpy as np
from yolo_candidates import Candidates, PredictionError

CLASS_OFFSET = 7680  # larger than any input: boxes of different classes never overlap
MOST_CANDIDATES = 30_000


@np.errstate(invalid="ignore", over="ignore")  # of absurdly large boxes
def suppress_overlaps(candidates: Candidates, iou: float, max_detections: int) -> Candidates:
    """Of overlapping boxes of one class the one with the best score; best first, at most `max_detections`.

    The arithmetic (float32, boxes moved apart by class) is that of Ultralytics, so that near `iou` the same boxes stay.
    """
    order = np.argsort(-candidates.scores, kind="stable")[:MOST_CANDIDATES]
    offsets = candidates.classes[order, None].astype(np.float32) * np.float32(CLASS_OFFSET)
    boxes = candidates.boxes[order] + offsets
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = np.arange(len(order))
    kept: list[int] = []
    while len(left) and len(kept) < max_detections:
        best, left = left[0], left[1:]
        kept.append(best)
        left = left[_overlap(boxes[best], areas[best], boxes[left], areas[left]) <= iou]
    return candidates.take(order[kept])


def check_geometry(geometry: np.ndarray) -> None:
    """Raise a `PredictionError` when a geometry leads nowhere."""
    if geometry.shape != (5,) or not np.isfinite(geometry).all() or geometry[:3].min() <= 0:
        raise PredictionError(
            f"GEOMETRY: {geometry.tolist()}; width, height, scale, pad x, pad y are expected; pass on what "
            "yolo_preprocess gave"
        )


def to_original(boxes: np.ndarray, geometry: np.ndarray) -> np.ndarray:
    """float32 [n, 4], x1 y1 x2 y2 in pixels of the original picture, inside it.

    Args:
        boxes: float32 [n, 4], pixels of the network's input.
        geometry: float32 [5], original width and height, scale, pad x, pad y.
    """
    width, height, scale, pad_x, pad_y = (float(value) for value in geometry)
    # The letterbox rounds each side to whole pixels, so each has its own scale.
    scale_x, scale_y = max(round(width * scale), 1) / width, max(round(height * scale), 1) / height
    moved = boxes - np.array([pad_x, pad_y, pad_x, pad_y], np.float32)
    scaled = moved / np.array([scale_x, scale_y, scale_x, scale_y], np.float32)
    return scaled.clip(0, np.array([width, height, width, height], np.float32))


def _overlap(box: np.ndarray, area: np.ndarray, boxes: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """Intersection over union of one box with others; two boxes without area overlap by 0."""
    sides = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    common = sides.clip(min=0).prod(axis=1)
    union = area + areas - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)
