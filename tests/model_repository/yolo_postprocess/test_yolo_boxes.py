"""One box per thing, in pixels of the original picture."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yolo_boxes import check_geometry, suppress_overlaps, to_original
from yolo_candidates import Candidates, PredictionError


def candidates(boxes: list, scores: list[float], classes: list[int] | None = None) -> Candidates:
    return Candidates(
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        scores=np.array(scores, np.float32),
        classes=np.array(classes or [0] * len(scores), np.int32),
    )


def test_of_boxes_that_overlap_the_best_stays() -> None:
    found = suppress_overlaps(
        candidates([[0, 0, 10, 10], [1, 0, 11, 10], [50, 50, 60, 60]], [0.5, 0.9, 0.7]), 0.45, 300
    )
    assert found.boxes.tolist() == [[1, 0, 11, 10], [50, 50, 60, 60]]
    assert found.scores == pytest.approx([0.9, 0.7])


def test_boxes_of_different_classes_do_not_suppress_each_other() -> None:
    same = [[0, 0, 10, 10]] * 3
    assert suppress_overlaps(candidates(same, [0.9, 0.8, 0.7], [0, 1, 0]), 0.45, 300).classes.tolist() == [0, 1]


def test_an_overlap_of_exactly_the_bound_stays() -> None:
    boxes = [[0, 0, 10, 10], [0, 5, 10, 15]]  # overlap 50 of 150
    third = np.float32(50) / np.float32(150)
    assert len(suppress_overlaps(candidates(boxes, [0.9, 0.8]), float(third), 300).scores) == 2
    assert (
        len(suppress_overlaps(candidates(boxes, [0.9, 0.8]), float(np.nextafter(third, np.float32(0))), 300).scores)
        == 1
    )


def test_equal_scores_keep_the_networks_order() -> None:
    boxes = [[0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]]
    assert suppress_overlaps(candidates(boxes, [0.5] * 3), 0.45, 300).boxes.tolist() == boxes


def test_no_more_than_the_most_detections_come_back() -> None:
    boxes = [[20 * n, 0, 20 * n + 10, 10] for n in range(400)]
    found = suppress_overlaps(candidates(boxes, np.linspace(0.9, 0.3, 400).tolist()), 0.45, 300)
    assert len(found.scores) == 300
    assert found.boxes.tolist() == boxes[:300]


@pytest.mark.parametrize("boxes", [[], [[3, 3, 3, 3], [3, 3, 3, 3]], [[5, 5, 1, 1]]])
def test_no_boxes_and_boxes_without_area_do_no_harm(boxes: list) -> None:
    assert len(suppress_overlaps(candidates(boxes, [0.9] * len(boxes)), 0.45, 300).scores) == len(boxes)


def test_only_the_best_thirty_thousand_boxes_are_looked_at() -> None:
    boxes = np.tile(np.array([0, 0, 10, 10], np.float32), (30_001, 1))
    boxes[-1] += 100  # apart from all others, so only the limit can keep it out
    many = Candidates(
        boxes=boxes, scores=np.linspace(0.9, 0.3, 30_001, dtype=np.float32), classes=np.zeros(30_001, np.int32)
    )
    assert suppress_overlaps(many, 0.45, 300).boxes.tolist() == [[0, 0, 10, 10]]
    assert len(suppress_overlaps(many.take(np.arange(1, 30_001)), 0.45, 300).scores) == 2


SIDES = st.floats(0, 640, width=32)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(SIDES, SIDES, st.floats(1, 200, width=32), st.floats(1, 200, width=32), st.integers(0, 3)),
        max_size=25,
    ),
    st.sampled_from([0.0, 0.3, 0.45, 0.7, 1.0]),
)
def test_suppression_agrees_with_the_textbook(rows: list, iou: float) -> None:
    boxes = [[x, y, x + w, y + h] for x, y, w, h, _ in rows]
    scores = np.random.default_rng(len(rows)).permutation(len(rows)) / 30 + 0.1
    given = candidates(boxes, scores.tolist(), [row[4] for row in rows])
    found = suppress_overlaps(given, iou, 300)
    assert found.scores.tolist() == given.scores[_textbook(given, iou)].tolist()


def _textbook(given: Candidates, iou: float) -> list[int]:
    """Greedy suppression, pair by pair."""
    kept: list[int] = []
    for row in np.argsort(-given.scores, kind="stable"):
        same = [k for k in kept if given.classes[k] == given.classes[row]]
        if all(_overlap(given, k, row) <= iou for k in same):
            kept.append(int(row))
    return kept


def _overlap(given: Candidates, one: int, other: int) -> np.float32:
    offset = given.classes[one].astype(np.float32) * np.float32(7680)
    a, b = given.boxes[one] + offset, given.boxes[other] + offset
    across = max(min(a[2], b[2]) - max(a[0], b[0]), np.float32(0))
    down = max(min(a[3], b[3]) - max(a[1], b[1]), np.float32(0))
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - across * down
    return across * down / area


def test_boxes_go_back_to_the_original_picture() -> None:
    geometry = np.array([1920, 1080, 416 / 1920, 0, 91], np.float32)
    boxes = np.array([[0, 91, 416, 325], [104, 104, 208, 208]], np.float32)
    moved = to_original(boxes, geometry)
    assert moved.dtype == np.float32
    assert moved[0].tolist() == [0, 0, 1920, 1080]
    assert moved[1] == pytest.approx([480, 60, 960, 540], abs=0.01)


def test_boxes_end_at_the_edges_of_the_picture() -> None:
    geometry = np.array([100, 50, 4.16, 0, 104], np.float32)
    assert to_original(np.array([[-50, 0, 900, 900]], np.float32), geometry).tolist() == [[0, 0, 100, 50]]


def test_no_boxes_stay_no_boxes() -> None:
    assert to_original(np.zeros((0, 4), np.float32), np.array([9, 9, 1, 0, 0], np.float32)).shape == (0, 4)


@pytest.mark.parametrize("geometry", [[0, 10, 1, 0, 0], [10, 10, -1, 0, 0], [10, np.nan, 1, 0, 0], [10, 10, 1]])
def test_a_geometry_that_leads_nowhere_is_refused(geometry: list) -> None:
    with pytest.raises(PredictionError, match=r"^GEOMETRY: \[.*\]; width, height, scale, pad x, pad y are expected; "):
        check_geometry(np.array(geometry, np.float32))
