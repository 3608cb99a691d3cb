"""Candidates and overlaps by torch, on the CPU and, where there is one, on a GPU: the boxes that numpy finds."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from yolo_boxes import suppress_overlaps
from yolo_candidates import candidates_in

from tests.needs_gpu import TORCH, marks
from tritonkit.testing import load_model, on_gpu

SHIPPED = Path(__file__).parents[3] / "model_repository" / "yolo_postprocess"
DEVICES = ["cpu", pytest.param("cuda:0", marks=marks(TORCH))]
CLASSES, ANCHORS = 5, 900
LAYOUTS = {"boxes_scores": (4, False), "boxes_scores_transposed": (4, True), "boxes_objectness_scores": (5, True)}


def crowded(seed: int, layout: str) -> np.ndarray:
    """What a network says of a crowd: many boxes over each other, some scores equal, one that is no number."""
    rng = np.random.default_rng(seed)
    first, is_transposed = LAYOUTS[layout]
    rows = np.empty((first + CLASSES, ANCHORS), np.float32)
    rows[:2] = rng.integers(0, 40, (2, ANCHORS)) * 10 + rng.uniform(-3, 3, (2, ANCHORS))
    rows[2:4] = rng.uniform(20, 60, (2, ANCHORS))
    rows[4:] = rng.uniform(0, 1, (first - 4 + CLASSES, ANCHORS)).round(2) ** 2
    rows[first, 7] = np.nan
    return np.ascontiguousarray(rows.T if is_transposed else rows)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("confidence", "iou", "most"), [(0.3, 0.45, 300), (0.0, 0.7, 50), (1.0, 0.45, 300)])
def test_the_same_boxes_stay(layout: str, confidence: float, iou: float, most: int, device: str) -> None:
    predictions = crowded(3, layout)
    here = suppress_overlaps(candidates_in(predictions, layout, CLASSES, confidence), iou, most)
    there = candidates_in(torch.tensor(predictions, device=device), layout, CLASSES, confidence)
    assert there.boxes.device.type == device.partition(":")[0]
    found = suppress_overlaps(there, iou, most).on_host()
    assert len(here.scores) == {0.3: len(here.scores), 0.0: 50, 1.0: 0}[confidence]
    assert found.classes.tolist() == here.classes.tolist()
    assert found.scores == pytest.approx(here.scores, abs=1e-6)
    assert np.abs(found.boxes - here.boxes).max(initial=0) < 0.01


def test_a_prediction_on_a_gpu_gives_the_answer_of_one_on_the_host(tmp_path: Path) -> None:
    folder = tmp_path / "yolo_postprocess"
    shutil.copytree(SHIPPED, folder, ignore=shutil.ignore_patterns("yolo.json", "labels.txt", "__pycache__"))
    (folder / "1" / "yolo.json").write_text(json.dumps({"layout": "boxes_scores", "classes": CLASSES}))
    (folder / "1" / "labels.txt").write_text("\n".join("abcde"))
    sent = {"GEOMETRY": np.array([832, 416, 0.5, 0, 104], np.float32), "CONFIDENCE": np.array([0.5], np.float32)}
    predictions = crowded(4, "boxes_scores")
    assert (
        'key: "FORCE_CPU_ONLY_INPUT_TENSORS"\n  value {\n    string_value: "no"'
        in (folder / "configs" / "gpu.pbtxt").read_text()
    )
    with load_model(folder) as model:
        model.module.GPU = "cpu"
        model.instance.initialize(model.arguments() | {"model_instance_kind": "GPU"})
        host = model.infer({"PREDICTIONS": predictions, **sent})
        device = model.infer({"PREDICTIONS": on_gpu(predictions), **{name: on_gpu(one) for name, one in sent.items()}})
    assert len(host["SCORES"]) > 20
    assert device["DETECTIONS"].tolist() == host["DETECTIONS"].tolist()
    assert (device["BOXES"] == host["BOXES"]).all() and (device["LABELS"] == host["LABELS"]).all()
