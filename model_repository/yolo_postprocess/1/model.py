"""yolo_postprocess: the network's answer -> boxes with names, in pixels of the original picture.

PREDICTIONS: float [rows, columns] in the layout that `yolo.json` names; GEOMETRY: float32 [5] of yolo_preprocess;
CONFIDENCE, IOU: float32 [1], optional, 0 to 1 ->
BOXES: float32 [n, 4], x1 y1 x2 y2; SCORES: float32 [n]; CLASSES: int32 [n]; LABELS: string [n];
DETECTIONS: string [1], all of it as JSON. IOU is not used where the network does NMS itself.
PREDICTIONS may lie on a GPU (torch, DLPack): then candidates and overlaps are found there, and only the boxes that stay
come to the host, where labels and JSON are made. Parameters `confidence` (0.25), `iou` (0.45) and `max_detections`
(300) hold when a request gives none.
"""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from yolo_boxes import check_geometry, suppress_overlaps, to_original
from yolo_candidates import Array, Candidates, PredictionError, candidates_in

CONFIDENCE, IOU, MAX_DETECTIONS = 0.25, 0.45, 300
GPU = "cuda"


class TritonPythonModel:
    """Answers each request on its own."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read layout and labels from the files of the export, defaults from the config's parameters."""
        folder = Path(args["model_repository"]) / args["model_version"]
        network = json.loads((folder / "yolo.json").read_text(encoding="utf-8"))
        self.layout, self.classes = network["layout"], network["classes"]
        self.labels = (folder / "labels.txt").read_text(encoding="utf-8").splitlines()
        if len(self.labels) != self.classes:
            raise ValueError(
                f"labels.txt: {len(self.labels)} lines; {self.classes} are expected; export the network again"
            )
        parameters = json.loads(args["model_config"]).get("parameters", {})
        self.confidence = _parameter(parameters, "confidence", CONFIDENCE, 1)
        self.iou = _parameter(parameters, "iou", IOU, 1)
        self.max_detections = int(_parameter(parameters, "max_detections", MAX_DETECTIONS, np.inf))
        if args["model_instance_kind"] == "GPU":
            _begin(f"{GPU}:{args['model_instance_device_id']}")

    def execute(self, requests: list) -> list:
        """One response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: object) -> object:
        try:
            confidence = _fraction(request, "CONFIDENCE", self.confidence)
            iou = _fraction(request, "IOU", self.iou)
            geometry = _on_host(_needed(request, "GEOMETRY"))
            check_geometry(geometry)
            predictions = _in_place(_needed(request, "PREDICTIONS"))
            found = candidates_in(predictions, self.layout, self.classes, confidence)
        except PredictionError as error:
            refusal = pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=refusal)
        if self.layout == "detections":
            found = found.take(slice(self.max_detections))
        else:
            found = suppress_overlaps(found, iou, self.max_detections)
        found = found.on_host()
        return self._response(found, to_original(found.boxes, geometry), geometry)

    def _response(self, found: Candidates, boxes: np.ndarray, geometry: np.ndarray) -> object:
        labels = [self._label(number) for number in found.classes]
        summary = _summary(labels, found.scores, boxes, geometry)
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("BOXES", boxes),
                pb_utils.Tensor("SCORES", found.scores),
                pb_utils.Tensor("CLASSES", found.classes),
                pb_utils.Tensor("LABELS", np.array([label.encode() for label in labels], np.object_)),
                pb_utils.Tensor("DETECTIONS", np.array([summary.encode()], np.object_)),
            ]
        )

    def _label(self, number: int) -> str:
        return self.labels[number] if 0 <= number < self.classes else f"class {number}"


def _summary(labels: list[str], scores: np.ndarray, boxes: np.ndarray, geometry: np.ndarray) -> str:
    """The JSON of DETECTIONS."""
    detections = [
        {"label": label, "score": round(float(score), 4), "box": [round(float(side), 2) for side in box]}
        for label, score, box in zip(labels, scores, boxes, strict=True)
    ]
    return json.dumps({"width": int(geometry[0]), "height": int(geometry[1]), "detections": detections})


def _begin(device: str) -> None:
    """Have torch take what it needs of the GPU now: a language model measures what is left when it loads."""
    import torch

    few = torch.arange(40, dtype=torch.float32, device=device)
    boxes = few.reshape(10, 4)
    suppress_overlaps(Candidates(boxes=boxes, scores=few[:10], classes=few[:10].int()), IOU, MAX_DETECTIONS).on_host()


def _needed(request: object, name: str) -> object:
    """An input without which nothing can be said. Triton only counts the inputs where some are optional."""
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        raise PredictionError(f"{name}: missing; every request needs it")
    return tensor


def _in_place(tensor: object) -> Array:
    """The tensor where it lies: numpy's on the host, torch's on a GPU."""
    if tensor.is_cpu():
        return tensor.as_numpy()
    import torch

    return torch.from_dlpack(tensor.to_dlpack())


def _on_host(tensor: object) -> np.ndarray:
    return tensor.as_numpy() if tensor.is_cpu() else _in_place(tensor).cpu().numpy()


def _fraction(request: object, name: str, default: float) -> float:
    """The optional input `name`, or the default."""
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        return default
    values = _on_host(tensor).ravel()
    if len(values) != 1 or not 0 <= values[0] <= 1:  # NaN is refused as well
        raise PredictionError(
            f"{name}: {values.tolist()}; one number from 0 to 1 is expected; leave it out for {default}"
        )
    return float(values[0])


def _parameter(parameters: dict, name: str, default: float, largest: float) -> float:
    """A parameter of the config as a number from 0 to `largest`, or the default."""
    text = parameters.get(name, {}).get("string_value", str(default))
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not 0 <= number <= largest or number == np.inf:
        raise ValueError(f"parameter {name}: '{text}'; a number from 0 to {largest} is expected; correct config.pbtxt")
    return number
