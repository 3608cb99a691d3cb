"""Which layout an output's shape means."""

import pytest

from weights.errors import ExportError
from weights.yolo.description import LAYOUTS
from weights.yolo.layouts import anchors_of, layout_of

SQUARE = (640, 640)


@pytest.mark.parametrize(
    ("shape", "classes", "wanted"),
    [
        ((84, 8400), 80, ("boxes_scores", 80)),
        ((8400, 84), 80, ("boxes_scores_transposed", 80)),
        ((25200, 85), 80, ("boxes_objectness_scores", 80)),
        ((300, 6), 80, ("detections", 80)),
        ((5, 8400), 1, ("boxes_scores", 1)),
        ((6, 8400), 2, ("boxes_scores", 2)),
        ((8400, 6), 2, ("boxes_scores_transposed", 2)),
        ((25200, 6), 1, ("boxes_objectness_scores", 1)),
        ((300, 6), 1, ("detections", 1)),
        ((300, 6), 2, ("detections", 2)),
        ((84, 8400), None, ("boxes_scores", 80)),
        ((8400, 84), None, ("boxes_scores_transposed", 80)),
        ((25200, 85), None, ("boxes_objectness_scores", 80)),
        ((84, 2535), None, ("boxes_scores", 80)),
    ],
)
def test_a_shape_and_the_class_count_tell_the_layout(shape: tuple, classes: int | None, wanted: tuple) -> None:
    assert layout_of(shape, classes, SQUARE, nms_inside=False) == wanted


def test_what_the_file_says_of_itself_decides_where_shapes_cannot() -> None:
    assert layout_of((2100, 6), 2, (320, 320), nms_inside=False)[0] == "boxes_scores_transposed"
    assert layout_of((2100, 6), 2, (320, 320), nms_inside=True)[0] == "detections"


@pytest.mark.parametrize(
    ("shape", "classes"),
    [((116, 8400), 80), ((56, 8400), 1), ((8400,), 80), ((300, 7), 80), ((4, 8400), None), ((300, 6), None)],
)
def test_another_shape_is_refused_with_the_shape_and_the_layouts_known(shape: tuple, classes: int | None) -> None:
    with pytest.raises(ExportError) as refused:
        layout_of(shape, classes, SQUARE, nms_inside=False)
    names = "unknown" if classes is None else classes
    assert str(refused.value).startswith(
        f"output of shape {list(shape)} per picture, {names} class names: no known layout"
    )
    assert all(text in str(refused.value) for text in LAYOUTS.values())


def test_anchors_are_counted_at_three_strides() -> None:
    assert anchors_of(SQUARE) == 8400
    assert anchors_of((320, 640)) == 4200
