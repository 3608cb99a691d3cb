"""Our boxes against those of the networks' own software: the exporters and the served code together."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from weights.catalogue import yolo

pytestmark = pytest.mark.slow
SIZE = 320
CASES = ["yolov8n outside", "yolov8n inside", "yolov10n outside", "yolov10n end2end", "yolo11n outside"]


@pytest.fixture(scope="module")
def ours(exports: dict[str, Path], pictures: tuple[Path, ...], detect: Callable) -> dict[str, list]:
    """What the served code finds: per export and picture, boxes and the network's outputs."""
    return {name: [detect(folder, picture) for picture in pictures] for name, folder in exports.items()}


@pytest.fixture(scope="module")
def theirs(
    exports: dict[str, Path],
    pictures: tuple[Path, ...],
    ours: dict[str, list],
    reference: Callable,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, dict[str, list]]:
    """What Ultralytics makes of the same outputs (`raw`) and of the same files (`predict`)."""
    folder = tmp_path_factory.mktemp("outputs")
    sizes = [(1080, 1920), (480, 640), (500, 333)]
    raw = []
    for number, (name, found) in enumerate(ours.items()):
        layout = json.loads((exports[name] / "yolo.json").read_text())["layout"]
        for place, (_, outputs) in enumerate(found):
            np.save(folder / f"{number}-{place}.npy", outputs)
            case = {"outputs": str(folder / f"{number}-{place}.npy"), "detections": layout == "detections"}
            raw.append(case | {"size": [SIZE, SIZE], "original": sizes[place]})
    predict = [
        {"model": str(export / "model.onnx"), "pictures": [str(path) for path in pictures], "size": SIZE}
        for export in exports.values()
    ]
    answers = reference({"raw": raw, "predict": predict})
    per = len(pictures)
    return {
        name: {"raw": answers["raw"][number * per : (number + 1) * per], "predict": answers["predict"][number]}
        for number, name in enumerate(ours)
    }


@pytest.mark.parametrize("case", CASES)
def test_the_same_outputs_give_the_boxes_of_ultralytics(case: str, ours: dict, theirs: dict) -> None:
    for (boxes, _), wanted in zip(ours[case], theirs[case]["raw"], strict=True):
        assert len(boxes) >= 5
        assert boxes.shape == np.shape(wanted)
        assert np.abs(boxes - wanted).max() < 0.01


@pytest.mark.parametrize("case", CASES)
def test_the_same_file_gives_the_boxes_of_ultralytics_within_a_pixel(case: str, ours: dict, theirs: dict) -> None:
    for (boxes, _), wanted in zip(ours[case], theirs[case]["predict"], strict=True):
        assert boxes.shape == np.shape(wanted)
        assert np.abs(boxes[:, :4] - np.array(wanted)[:, :4]).max() < 1
        assert (boxes[:, 5] == np.array(wanted)[:, 5]).all()


@pytest.mark.parametrize("case", CASES)
def test_a_batch_gives_what_its_pictures_give_alone(case: str, exports: dict, run_network: Callable) -> None:
    """YOL-09: with NMS outside, inside, and none needed."""
    images = np.random.default_rng(3).random((4, 3, SIZE, SIZE), np.float32)
    together = run_network(exports[case], images)
    alone = np.concatenate([run_network(exports[case], image[None]) for image in images])
    assert np.abs(alone).max(axis=(1, 2)).min() > 0, "no row may be empty"
    assert np.allclose(together, alone, atol=0.05)


def test_yolov3_tiny_finds_the_boxes_of_opencv(
    darknet_files: tuple[Path, ...], photos: tuple[Path, ...], reference: Callable, detect: Callable, cache_folder: Path
) -> None:
    export = yolo("yolov3-tiny", cache_folder, print)
    cfg, weights, _ = darknet_files
    wanted = reference({"darknet": {"cfg": str(cfg), "weights": str(weights), "pictures": [str(p) for p in photos]}})
    for photo, boxes in zip(photos, wanted, strict=True):
        found = detect(export, photo)[0]
        assert found.shape == np.shape(boxes) == (1, 6)
        assert np.abs(found[:, :4] - np.array(boxes)[:, :4]).max() < 1
        assert np.abs(found[:, 4:] - np.array(boxes)[:, 4:]).max() < (0.03 if photo.suffix == ".jpg" else 0.001)
