"""Stand-in for the pipeline `detect`: one box whose label is the number of bytes that came."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def number_of(request: object, name: str) -> float:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return -1.0 if tensor is None else float(tensor.as_numpy().reshape(-1)[0])


class TritonPythonModel:
    def execute(self, requests: list) -> list:
        return [self.answer(request) for request in requests]

    def answer(self, request: object) -> object:
        image = pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy()
        box = [0.0, 1.0, number_of(request, "CONFIDENCE"), number_of(request, "IOU")]
        label = f"{image.size} bytes"
        found = {"width": 640, "height": 480, "detections": [{"label": label, "score": 0.5, "box": box}]}
        outputs = [
            pb_utils.Tensor("BOXES", np.array([box], dtype=np.float32)),
            pb_utils.Tensor("SCORES", np.array([0.5], dtype=np.float32)),
            pb_utils.Tensor("CLASSES", np.array([7], dtype=np.int32)),
            pb_utils.Tensor("LABELS", np.array([label.encode()], dtype=object)),
            pb_utils.Tensor("DETECTIONS", np.array([json.dumps(found).encode()], dtype=object)),
        ]
        return pb_utils.InferenceResponse(outputs)
