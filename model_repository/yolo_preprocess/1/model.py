"""yolo_preprocess: a picture file -> the network's input.

IMAGE: uint8 [bytes of the file] -> IMAGES: float32 or float16 [3, height, width], RGB, 0 to 1, letterboxed
(with a leading batch dimension when the network takes only one fixed batch),
GEOMETRY: float32 [5], original width and height in pixels, scale, pad x, pad y.
`yolo.json` beside this file says how large the input is. Parameters `max_pixels` (200 million; larger pictures are
refused) and `exact_pixels` (40 million; larger ones are scaled down while decoding: faster, not bit for bit).
"""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from yolo_letterbox import pad
from yolo_picture import Limits, PictureError, fitted_picture

LIMITS = ("max_pixels", "exact_pixels")
DTYPES = {"TYPE_FP32": np.float32, "TYPE_FP16": np.float16}


class TritonPythonModel:
    """Answers each request on its own; a bad picture fails its own request only."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the network's input from `yolo.json` and the limit from the config's parameters."""
        folder = Path(args["model_repository"]) / args["model_version"]
        network = json.loads((folder / "yolo.json").read_text(encoding="utf-8"))
        self.width, self.height, self.batch = network["width"], network["height"], network["batch"]
        self.dtype = DTYPES[network["data_type"]]
        parameters = json.loads(args["model_config"]).get("parameters", {})
        self.limits = Limits(**{name: _count(name, parameters[name]) for name in LIMITS if name in parameters})

    def execute(self, requests: list) -> list:
        """One response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: object) -> object:
        content = pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy().tobytes()
        try:
            pixels, letterbox = fitted_picture(content, self.width, self.height, self.limits)
        except PictureError as error:
            refusal = pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=refusal)
        images = pad(pixels, letterbox, self.width, self.height).astype(self.dtype, copy=False)
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("IMAGES", self._batched(images)),
                pb_utils.Tensor("GEOMETRY", letterbox.tensor()),
            ]
        )

    def _batched(self, images: np.ndarray) -> np.ndarray:
        """The picture as the first row of the network's fixed batch, the other rows zero; as it is without one."""
        if self.batch is None:
            return images
        rows = np.zeros((self.batch, *images.shape), images.dtype)
        rows[0] = images
        return rows


def _count(name: str, parameter: dict[str, str]) -> int:
    """A parameter of the config as a whole number above 0."""
    text = parameter["string_value"]
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError(f"parameter {name}: '{text}'; a whole number above 0 is expected; correct config.pbtxt")
    return int(text)
