"""Serves: IMAGE uint8 [n], the bytes of a picture file -> PIXELS float32 [3, 32, 32], RGB, 0 to 1."""

import io

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image


class TritonPythonModel:
    def execute(self, requests: list) -> list:
        return [self._answer(request) for request in requests]

    def _answer(self, request: object) -> object:
        data = pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy()
        try:
            picture = Image.open(io.BytesIO(data.tobytes())).convert("RGB").resize((32, 32))
        except OSError as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"IMAGE: {error}"))
        pixels = np.asarray(picture, np.float32).transpose(2, 0, 1) / 255
        return pb_utils.InferenceResponse([pb_utils.Tensor("PIXELS", pixels)])
