"""The features step: samples become log-mel windows for the encoder.

The work is in whisper_audio.py and whisper_spans.py beside this file. The number of mel bins is that of this model's
own output WINDOWS, so the config alone says for which checkpoint it is (80, or 128 since large-v3).
"""

import json
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
import whisper_audio
import whisper_spans


class TritonPythonModel:
    """Computes the features of recordings, one request at a time."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config.get("parameters", {}).items()}
        outputs = {output["name"]: output["dims"] for output in config["output"]}
        self.n_mels = int(outputs["WINDOWS"][1])
        self.max_audio_seconds = float(parameters.get("max_audio_seconds", "7200"))
        self.max_windows = int(parameters.get("encoder_batch_size", "8"))

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self._response(request) for request in requests]

    def _response(self, request: Any) -> Any:
        try:
            mode = _mode_of(request)
            samples = _samples_of(request)
            whisper_audio.check_samples(samples, self.max_audio_seconds)
        except whisper_audio.InputError as error:
            return pb_utils.InferenceResponse([], pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))
        mel = whisper_audio.log_mel(samples, self.n_mels)
        spans = whisper_spans.plan_spans(mel, mode)
        tensors = {
            "WINDOWS": whisper_audio.windows(mel, spans[: self.max_windows]),
            "MEL": np.ascontiguousarray(mel),
            "SPANS": spans,
        }
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, array) for name, array in tensors.items()])


def _samples_of(request: Any) -> np.ndarray:
    tensor = pb_utils.get_input_tensor_by_name(request, "AUDIO")
    if tensor is None:  # with MODE in its place Triton lets it through: it counts inputs where some are optional
        raise whisper_audio.InputError("AUDIO: missing; mono 16 kHz float32 samples are needed")
    return np.asarray(tensor.as_numpy())


def _mode_of(request: Any) -> str:
    tensor = pb_utils.get_input_tensor_by_name(request, "MODE")
    text = "" if tensor is None else tensor.as_numpy().reshape(-1)[0].decode("utf-8", errors="replace")
    mode = text.strip().lower() or whisper_spans.MODES[0]
    if mode not in whisper_spans.MODES:
        raise whisper_audio.InputError(
            f'MODE: "{text}"; {" or ".join(whisper_spans.MODES)} is expected; '
            f"leave it empty for {whisper_spans.MODES[0]}"
        )
    return mode
