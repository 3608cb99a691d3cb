"""Which of the known layouts an output has.

In: the shape of one picture's output, what the file says about itself. Out: a key of `LAYOUTS` and the class count.
"""

from __future__ import annotations

from weights.errors import ExportError
from weights.yolo.description import LAYOUTS

STRIDES = (8, 16, 32)
MOST_DETECTIONS = 1000  # NMS inside a network leaves at most so many rows; no detector has so few anchors at its size


def layout_of(
    shape: tuple[int, ...], classes: int | None, size: tuple[int, int], *, nms_inside: bool
) -> tuple[str, int]:
    """The layout of an output and its number of classes.

    Args:
        shape: Of the output without its batch dimension.
        classes: How many class names are known; None when none are.
        size: Height and width of the input.
        nms_inside: Whether the file itself says that NMS is done inside.

    Raises:
        ExportError: No layout fits; the message lists the shape found and the layouts known.
    """
    if len(shape) == 2:
        fitting = _fitting(*shape, classes, anchors_of(size), nms_inside)
        if fitting is not None:
            return fitting
    names = "unknown" if classes is None else str(classes)
    known = "; ".join(LAYOUTS.values())
    raise ExportError(
        f"output of shape {list(shape)} per picture, {names} class names: no known layout has it. Known are: {known}. "
        "Export the detection network alone, or give the class names if they are missing."
    )


def anchors_of(size: tuple[int, int]) -> int:
    """How many places a network of strides 8, 16, 32 looks at."""
    return sum((size[0] // stride) * (size[1] // stride) for stride in STRIDES)


def _fitting(rows: int, columns: int, classes: int | None, anchors: int, nms_inside: bool) -> tuple[str, int] | None:
    if columns == 6 and (nms_inside or (rows <= MOST_DETECTIONS and rows not in (anchors, 3 * anchors))):
        return None if classes is None else ("detections", classes)
    if classes is None:
        return _guessed(rows, columns, anchors)
    if rows == 4 + classes:
        return "boxes_scores", classes
    if columns == 4 + classes:
        return "boxes_scores_transposed", classes
    if columns == 5 + classes:
        return "boxes_objectness_scores", classes
    return None


def _guessed(rows: int, columns: int, anchors: int) -> tuple[str, int] | None:
    """Without class names: there are far more anchors than classes, and only some layouts have one anchor per place."""
    if 5 <= rows < columns:
        return "boxes_scores", rows - 4
    if 5 <= columns < rows and rows == anchors:
        return "boxes_scores_transposed", columns - 4
    if 6 <= columns < rows:
        return "boxes_objectness_scores", columns - 5
    return None
