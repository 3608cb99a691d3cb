"""Stand-in for the pipeline `transcribe`: says how many samples came; LANGUAGE "sleep 2" answers two seconds later."""

import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils


def text_of(request: object, name: str) -> str:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return "" if tensor is None else tensor.as_numpy().reshape(-1)[0].decode()


def strings(name: str, text: str) -> object:
    return pb_utils.Tensor(name, np.array([text.encode()], dtype=object))


class TritonPythonModel:
    def execute(self, requests: list) -> list:
        return [self.answer(request) for request in requests]

    def answer(self, request: object) -> object:
        samples = pb_utils.get_input_tensor_by_name(request, "AUDIO").as_numpy()
        language, task, mode = (text_of(request, name) for name in ("LANGUAGE", "TASK", "MODE"))
        if samples.size == 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("AUDIO: 0 samples; at least 1 is needed"))
        if language.startswith("sleep"):
            time.sleep(float(language.split()[1]))
        text = f"{samples.size} samples, sum {float(samples.sum()):.3f}, {task}, {mode}"
        segments = json.dumps([{"start": 0.0, "end": samples.size / 16000, "text": text, "tokens": [1, 2]}])
        outputs = [strings("TRANSCRIPT", text), strings("SEGMENTS", segments), strings("DETECTED_LANGUAGE", "en")]
        return pb_utils.InferenceResponse(outputs)
