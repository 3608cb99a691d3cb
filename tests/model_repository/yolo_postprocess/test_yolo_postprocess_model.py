"""yolo_postprocess as the server runs it, without the server."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tritonkit.testing import LoadError, Model, ModelError, load_model

SHIPPED = Path(__file__).parents[3] / "model_repository" / "yolo_postprocess"
GEOMETRY = np.array([832, 416, 0.5, 0, 104], np.float32)
# cx cy w h, scores of "cup", "Straße", "dog"
ROWS = np.array(
    [
        [100, 204, 40, 20, 0.1, 0.8, 0.1],
        [101, 204, 40, 20, 0.1, 0.7, 0.1],
        [300, 304, 60, 60, 0.0, 0.0, 0.3],
        [200, 200, 10, 10, 0.1, 0.1, 0.1],
    ],
    np.float32,
)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Model]:
    """Loads the model as it is shipped, with a network of three classes."""

    def load(
        parameters: dict[str, str] | None = None, layout: str = "boxes_scores", labels: str = "cup\nStraße\ndog\n"
    ) -> Model:
        folder = tmp_path / "yolo_postprocess"
        shutil.copytree(
            SHIPPED, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("yolo.json", "labels.txt", "__pycache__")
        )
        (folder / "1" / "yolo.json").write_text(json.dumps({"layout": layout, "classes": 3}))
        (folder / "1" / "labels.txt").write_text(labels, encoding="utf-8")
        return load_model(folder, parameters=parameters)

    return load


def asked(rows: np.ndarray = ROWS.T, **more: float) -> dict[str, np.ndarray]:
    extra = {name: np.array([value], np.float32) for name, value in more.items()}
    return {"PREDICTIONS": np.ascontiguousarray(rows), "GEOMETRY": GEOMETRY, **extra}


def test_things_come_back_with_names_in_pixels_of_the_original(load: Callable[..., Model]) -> None:
    answer = load().infer(asked())
    assert answer["BOXES"].tolist() == [[160, 180, 240, 220], [540, 340, 660, 416]]
    assert answer["SCORES"] == pytest.approx([0.8, 0.3])
    assert answer["CLASSES"].tolist() == [1, 2]
    assert [label.decode() for label in answer["LABELS"]] == ["Straße", "dog"]
    assert json.loads(answer["DETECTIONS"][0]) == {
        "width": 832,
        "height": 416,
        "detections": [
            {"label": "Straße", "score": 0.8, "box": [160, 180, 240, 220]},
            {"label": "dog", "score": 0.3, "box": [540, 340, 660, 416]},
        ],
    }


def test_nothing_found_is_an_answer(load: Callable[..., Model]) -> None:
    answer = load().infer(asked(CONFIDENCE=0.95))
    assert answer["BOXES"].shape == (0, 4)
    assert answer["SCORES"].shape == answer["CLASSES"].shape == answer["LABELS"].shape == (0,)
    assert json.loads(answer["DETECTIONS"][0])["detections"] == []


def test_a_request_may_set_its_own_bounds(load: Callable[..., Model]) -> None:
    model = load()
    assert len(model.infer(asked(CONFIDENCE=0.5))["SCORES"]) == 1
    assert len(model.infer(asked(CONFIDENCE=0.05, IOU=1.0))["SCORES"]) == 4
    assert len(model.infer(asked(CONFIDENCE=0, IOU=0))["SCORES"]) == 3
    assert len(model.infer(asked())["SCORES"]) == 2, "the next request has the defaults again"


def test_the_defaults_are_parameters(load: Callable[..., Model]) -> None:
    model = load({"confidence": "0.05", "iou": "0.99", "max_detections": "3"})
    assert model.infer(asked())["SCORES"] == pytest.approx([0.8, 0.7, 0.3])


@pytest.mark.parametrize("name", ["CONFIDENCE", "IOU"])
@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan, np.inf])
def test_a_bound_out_of_range_is_refused_by_its_name(name: str, value: float, load: Callable[..., Model]) -> None:
    model = load()
    good, bad = model.execute([asked(), asked(**{name: value})])
    assert isinstance(bad, ModelError)
    assert bad.code == "INVALID_ARG"
    default = {"CONFIDENCE": 0.25, "IOU": 0.45}[name]
    written = np.float32(value).item()
    assert bad.message == f"{name}: [{written}]; one number from 0 to 1 is expected; leave it out for {default}"
    assert len(good["SCORES"]) == 2


def test_nms_inside_the_network_is_left_as_it_is(load: Callable[..., Model]) -> None:
    rows = np.zeros((300, 6), np.float32)
    rows[:3] = [[80, 194, 120, 214, 0.8, 1], [81, 194, 121, 214, 0.7, 1], [0, 104, 9, 113, 0.3, 7]]
    answer = load(layout="detections").infer(asked(rows, IOU=0))
    assert answer["SCORES"] == pytest.approx([0.8, 0.7, 0.3])
    assert [label.decode() for label in answer["LABELS"]] == ["Straße", "Straße", "class 7"]
    fewer = load({"max_detections": "1"}, layout="detections").infer(asked(rows))
    assert fewer["BOXES"].tolist() == [[160, 180, 240, 220]]


def test_the_answer_of_another_network_is_refused(load: Callable[..., Model]) -> None:
    with pytest.raises(ModelError, match=r"^PREDICTIONS: shape \[9, 4\]; \[7, anchors\] is expected"):
        load().infer(asked(np.zeros((9, 4), np.float32)))
    with pytest.raises(ModelError, match=r"^GEOMETRY: \[0\.0, "):
        load().infer({"PREDICTIONS": ROWS.T.copy(), "GEOMETRY": np.zeros(5, np.float32)})


def test_many_at_once_give_what_each_gives_alone(load: Callable[..., Model]) -> None:
    """YOL-09."""
    model = load()
    requests = [asked(np.roll(ROWS, n, axis=0).T, CONFIDENCE=0.1 * n) for n in range(5)]
    for together, alone in zip(model.execute(requests), map(model.infer, requests), strict=True):
        assert together["DETECTIONS"].tolist() == alone["DETECTIONS"].tolist()


def test_labels_of_another_network_stop_the_loading(load: Callable[..., Model]) -> None:
    with pytest.raises(LoadError, match=r"labels\.txt: 2 lines; 3 are expected; export the network again"):
        load(labels="cup\ndog\n")


@pytest.mark.parametrize(
    ("name", "text"), [("confidence", "2"), ("iou", "much"), ("max_detections", "-1"), ("max_detections", "inf")]
)
def test_a_parameter_out_of_range_stops_the_loading(name: str, text: str, load: Callable[..., Model]) -> None:
    with pytest.raises(LoadError, match=f"parameter {name}: '{text}'; a number from 0 to "):
        load({name: text})
