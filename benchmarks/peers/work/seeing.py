"""Pictures to detections: the files' bytes in, labels, scores and boxes out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.peers.work.places import REPOSITORY, session, share_served_code

share_served_code("yolo_preprocess", "yolo_postprocess")

from yolo_boxes import suppress_overlaps, to_original  # noqa: E402
from yolo_candidates import candidates_in  # noqa: E402
from yolo_letterbox import pad  # noqa: E402
from yolo_picture import Limits, fitted_picture  # noqa: E402

Detections = list[dict[str, Any]]  # label, score (0 to 1), box (x1 y1 x2 y2, pixels of the picture)


class Seeing:
    """The detection network, with what comes before and behind it."""

    def __init__(self) -> None:
        described = REPOSITORY / "yolo_postprocess" / "1"
        self._network = json.loads((described / "yolo.json").read_text(encoding="utf-8"))
        self._labels = (described / "labels.txt").read_text(encoding="utf-8").splitlines()
        self._session = session(REPOSITORY / "yolo" / "1" / "model.onnx")
        self._takes_floats = self._session.get_inputs()[0].type == "tensor(float)"

    def batch(self, files: Sequence[bytes]) -> list[Detections]:
        """What is in each picture; the network runs once."""
        fitted = [self._fitted(content) for content in files]
        images = np.stack([image for image, _ in fitted])
        if self._takes_floats and images.dtype == np.uint8:
            images = images.astype(np.float32) / np.float32(255)
        answers = self._session.run(["output0"], {"images": images})[0]
        return [self._found(answer, geometry) for answer, (_, geometry) in zip(answers, fitted, strict=True)]

    def _fitted(self, content: bytes) -> tuple[np.ndarray, np.ndarray]:
        width, height = self._network["width"], self._network["height"]
        pixels, letterbox = fitted_picture(content, width, height, Limits())
        return pad(pixels, letterbox, width, height), letterbox.tensor()

    def _found(self, answer: np.ndarray, geometry: np.ndarray) -> Detections:
        candidates = candidates_in(answer, self._network["layout"], self._network["classes"], 0.25)
        kept = suppress_overlaps(candidates, 0.45, 300)
        boxes = to_original(kept.boxes, geometry)
        return [
            {"label": self._labels[number], "score": round(float(score), 4), "box": [round(float(x), 2) for x in box]}
            for number, score, box in zip(kept.classes, kept.scores, boxes, strict=True)
        ]
