"""yolo_preprocess: a picture file -> the network's input.

IMAGE: uint8 [bytes of the file] -> IMAGES: uint8 [3, height, width], RGB, letterboxed; float32 or float16 from 0 to 1
where the network takes such (with a leading batch dimension when the network takes only one fixed batch),
GEOMETRY: float32 [5], original width and height in pixels, scale, pad x, pad y. AFTER, if an ensemble maps it, is not
read: the step begins when that tensor is there.
With an instance on a GPU, and IMAGES named in the parameter `device_outputs`, the pixels are scaled there, and IMAGES
stays there (torch, DLPack). `yolo.json` beside this file says how large the input is. Parameters `max_pixels` (200
million; larger pictures are refused) and `exact_pixels` (40 million; larger ones are scaled down while decoding:
faster, not bit for bit).
"""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from yolo_letterbox import Array, Letterbox, as_floats, filled, library_of, pad
from yolo_picture import Limits, PictureError, example, fitted_picture

GPU = "cuda"
LIMITS = ("max_pixels", "exact_pixels")
FLOATS = {"TYPE_FP32": "float32", "TYPE_FP16": "float16"}  # a network of any other type takes uint8


class TritonPythonModel:
    """Answers each request on its own; a bad picture fails its own request only."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the network's input from `yolo.json` and the limit from the config's parameters."""
        folder = Path(args["model_repository"]) / args["model_version"]
        network = json.loads((folder / "yolo.json").read_text(encoding="utf-8"))
        self.width, self.height, self.batch = network["width"], network["height"], network["batch"]
        self.floats = FLOATS.get(network["data_type"])
        parameters = json.loads(args["model_config"]).get("parameters", {})
        leaves = parameters.get("device_outputs", {}).get("string_value", "").split()
        is_on_gpu = args["model_instance_kind"] == "GPU" and "IMAGES" in leaves
        self.device = f"{GPU}:{args['model_instance_device_id']}" if is_on_gpu else None
        self.limits = Limits(**{name: _count(name, parameters[name]) for name in LIMITS if name in parameters})
        if self.device is not None:  # what torch takes of the GPU is to be there before a language model measures it
            self._images(example())

    def execute(self, requests: list) -> list:
        """One response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: object) -> object:
        content = pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy().tobytes()
        try:
            images, letterbox = self._images(content)
        except PictureError as error:
            refusal = pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=refusal)
        return pb_utils.InferenceResponse(
            output_tensors=[_tensor("IMAGES", images), pb_utils.Tensor("GEOMETRY", letterbox.tensor())]
        )

    def _images(self, content: bytes) -> tuple[Array, Letterbox]:
        """The network's input, and where the picture lies in it."""
        pixels, letterbox = fitted_picture(content, self.width, self.height, self.limits, self.device)
        return self._as_wanted(pad(pixels, letterbox, self.width, self.height)), letterbox

    def _as_wanted(self, images: Array) -> Array:
        """In the network's type, as the first row of its batch where that is fixed."""
        if self.floats is not None:
            images = as_floats(images, self.floats)
        if self.batch is None:
            return images
        rows = filled(images, (self.batch, *images.shape), 0)
        rows[0] = images
        return rows


def _tensor(name: str, array: Array) -> object:
    """The tensor where the array lies; what is on a GPU is ready there when this returns."""
    if isinstance(array, np.ndarray):
        return pb_utils.Tensor(name, array)
    if array.is_cuda:
        library_of(array).cuda.current_stream(array.device).synchronize()
    return pb_utils.Tensor.from_dlpack(name, array)


def _count(name: str, parameter: dict[str, str]) -> int:
    """A parameter of the config as a whole number above 0."""
    text = parameter["string_value"]
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError(f"parameter {name}: '{text}'; a whole number above 0 is expected; correct config.pbtxt")
    return int(text)
