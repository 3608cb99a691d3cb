"""The network's answer, in each layout, as boxes with one score and one class."""

import numpy as np
import pytest
from yolo_candidates import Candidates, PredictionError, candidates_in

CLASSES = 3
# cx cy w h, scores of three classes
ROWS = np.array(
    [
        [50, 60, 20, 40, 0.1, 0.8, 0.2],
        [10, 10, 4, 4, 0.2, 0.1, 0.1],
        [30, 20, 10, 10, 0.9, 0.1, 0.3],
    ],
    np.float32,
)
BOXES = [[40, 40, 60, 80], [25, 15, 35, 25]]


def answers(layout: str) -> np.ndarray:
    """The same three boxes in another layout."""
    if layout == "boxes_scores":
        return ROWS.T
    if layout == "boxes_scores_transposed":
        return ROWS
    if layout == "boxes_objectness_scores":
        return np.column_stack((ROWS[:, :4], np.full(3, 0.5, np.float32), ROWS[:, 4:] * 2))
    if layout == "boxes_best":
        return np.column_stack((ROWS[:, :4], ROWS[:, 4:].max(axis=1), ROWS[:, 4:].argmax(axis=1))).T
    centre, half, scores = ROWS[:, :2], ROWS[:, 2:4] / 2, ROWS[:, 4:]
    return np.column_stack((centre - half, centre + half, scores.max(axis=1), scores.argmax(axis=1)))


LAYOUTS = ["boxes_best", "boxes_scores", "boxes_scores_transposed", "boxes_objectness_scores", "detections"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("leading", [(), (1,), (1, 1)])
def test_every_layout_gives_the_same_boxes(layout: str, dtype: type, leading: tuple) -> None:
    predictions = answers(layout).astype(dtype)
    found = candidates_in(predictions.reshape(*leading, *predictions.shape), layout, CLASSES, 0.25)
    assert found.boxes.dtype == found.scores.dtype == np.float32
    assert found.classes.dtype == np.int32
    assert found.boxes.tolist() == BOXES
    assert found.scores == pytest.approx([0.8, 0.9], abs=1e-3)
    assert found.classes.tolist() == [1, 0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_a_fixed_batch_only_the_first_row_is_the_picture(layout: str) -> None:
    predictions = np.stack((answers(layout), answers(layout) * 0))
    assert candidates_in(predictions, layout, CLASSES, 0.25).boxes.tolist() == BOXES


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_padding_are_never_boxes(layout: str) -> None:
    """YOL-09."""
    empty = np.zeros_like(answers(layout))
    found = candidates_in(empty, layout, CLASSES, 0)
    assert found.boxes.shape == (0, 4)
    assert found.scores.shape == found.classes.shape == (0,)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_no_number_is_no_box(layout: str) -> None:
    predictions = answers(layout).copy()
    predictions[predictions == predictions.max()] = np.nan
    assert np.isfinite(candidates_in(predictions, layout, CLASSES, 0.25).boxes).all()
    assert len(candidates_in(np.full_like(predictions, np.nan), layout, CLASSES, 0.25).scores) == 0
    assert len(candidates_in(np.full_like(predictions, np.inf), layout, CLASSES, 0.25).scores) == 0


def test_a_confidence_is_a_bound_that_must_be_passed() -> None:
    assert len(candidates_in(ROWS.T, "boxes_scores", CLASSES, float(np.float32(0.9))).scores) == 0


@pytest.mark.parametrize(
    ("shape", "layout", "wanted"),
    [
        ((8, 100), "boxes_scores", "[7, anchors]"),
        ((100, 8), "boxes_scores_transposed", "[n, 7]"),
        ((100, 7), "boxes_objectness_scores", "[n, 8]"),
        ((300, 7), "detections", "[n, 6]"),
        ((7,), "boxes_scores", "[7, anchors]"),
        ((0, 7, 100), "boxes_scores", "[7, anchors]"),
    ],
)
def test_another_shape_is_refused_with_both_shapes(shape: tuple, layout: str, wanted: str) -> None:
    with pytest.raises(PredictionError) as refused:
        candidates_in(np.zeros(shape, np.float32), layout, CLASSES, 0.25)
    assert str(refused.value) == (
        f"PREDICTIONS: shape {list(shape)}; {wanted} is expected ({layout}, 3 classes); "
        "labels.txt and yolo.json must come from the same export as the network"
    )


def test_taking_rows_keeps_their_order() -> None:
    found = candidates_in(ROWS.T, "boxes_scores", CLASSES, 0.25).take(np.array([1, 0]))
    assert isinstance(found, Candidates)
    assert found.boxes.tolist() == BOXES[::-1]
