"""From candidates to detections: one box per thing, in pixels of the original picture.

In: `Candidates` in pixels of the network's input, and the geometry of the letterbox. Out: fewer of them, moved back.
Overlaps are looked for where the candidates lie, on a GPU too; what is left of them is small.
"""

import numpy as np
from yolo_candidates import Array, Candidates, PredictionError, cast, library_of

CLASS_OFFSET = 7680  # larger than any input: boxes of different classes never overlap
MOST_CANDIDATES = 30_000
BLOCK = 256


@np.errstate(invalid="ignore", over="ignore")  # of absurdly large boxes
def suppress_overlaps(candidates: Candidates, iou: float, max_detections: int) -> Candidates:
    """Of overlapping boxes of one class the one with the best score; best first, at most `max_detections`.

    The arithmetic (float32, boxes moved apart by class) is that of Ultralytics, so that near `iou` the same boxes stay.
    Boxes are taken a block at a time, so that a GPU has something to do: those that overlap no better box of an earlier
    block, and among these those that overlap no better one of their own.
    """
    order = _best_first(candidates.scores)[:MOST_CANDIDATES]
    boxes = candidates.boxes[order] + cast(candidates.classes[order, None], "float32") * CLASS_OFFSET
    kept, library = order[:0], library_of(boxes)
    kept_boxes = boxes[:0]
    for start in range(0, len(order), BLOCK):
        block, rows = boxes[start : start + BLOCK], order[start : start + BLOCK]
        free = ~library.any(_overlap(kept_boxes, block) > iou, axis=0)
        block, rows = block[free], rows[free]
        stays = _without_worse(_overlap(block, block) > iou)
        kept = library.concatenate((kept, rows[stays]))
        kept_boxes = library.concatenate((kept_boxes, block[stays]))
        if len(kept) >= max_detections:
            break
    return candidates.take(kept[:max_detections])


def _best_first(scores: Array) -> Array:
    """Rows in order of their scores; equal ones keep theirs."""
    library = library_of(scores)
    return np.argsort(-scores, kind="stable") if library is np else library.argsort(-scores, stable=True)


def _without_worse(overlaps: Array) -> Array:
    """Which of some boxes, best first, overlap no better one that stays: bool [n] from bool [n, n].

    Asked again until nothing changes: the first box is right at once, the second after the first at the latest.
    """
    library = library_of(overlaps)
    better = library.triu(overlaps, 1)
    stays = library.ones_like(better[0]) if len(better) else better.reshape(0)
    while len(stays):
        now = ~library.any(better & stays[:, None], axis=0)
        if bool((now == stays).all()):
            break
        stays = now
    return stays


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


def _overlap(some: Array, others: Array) -> Array:
    """Intersection over union of each box with each other: [n, m]; two boxes without area overlap by 0."""
    library = library_of(others)
    left = some[:, None]
    sides = library.minimum(left[..., 2:], others[:, 2:]) - library.maximum(left[..., :2], others[:, :2])
    sides = sides.clip(min=0)
    common = sides[..., 0] * sides[..., 1]
    union = _areas(left) + _areas(others) - common
    return library.where(union > 0, common / library.where(union > 0, union, 1), 0)


def _areas(boxes: Array) -> Array:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
