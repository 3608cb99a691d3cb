"""Stand-in for the model `llm` and the pipelines that end in it: streams words at a pace that the request chooses.

SAMPLING_PARAMETERS {"words": 5, "pause_s": 0.1, "log": path, "fail_at": 3, "join_end": true}: when the caller goes
away, `cancelled after N` is written to the log; at word fail_at an error is sent; join_end puts the FINAL flag on the
last data.
"""

import json
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def text_of(request: object, name: str) -> str | None:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy().reshape(-1)[0].decode()


def response(**outputs: object) -> object:
    tensors = []
    for name, value in outputs.items():
        dtype = object if isinstance(value, str) else np.int32
        tensors.append(pb_utils.Tensor(name, np.array([value.encode() if isinstance(value, str) else value], dtype)))
    return pb_utils.InferenceResponse(tensors)


class TritonPythonModel:
    def execute(self, requests: list) -> None:
        for request in requests:
            threading.Thread(target=self.stream, args=(request, request.get_response_sender()), daemon=True).start()

    def stream(self, request: object, sender: object) -> None:
        options = json.loads(text_of(request, "SAMPLING_PARAMETERS") or "{}")
        words, pause_s = options.get("words", 3), options.get("pause_s", 0.0)
        side = {}
        audio, image = (pb_utils.get_input_tensor_by_name(request, name) for name in ("AUDIO", "IMAGE"))
        if audio is not None:
            side["TRANSCRIPT"] = f"{audio.as_numpy().size} samples"
        if image is not None:
            box = {"label": f"{image.as_numpy().size} bytes", "score": 0.5, "box": [0, 0, 1, 1]}
            side["DETECTIONS"] = json.dumps({"width": 4, "height": 3, "detections": [box]})
        if side:
            sender.send(response(**side))
        for number in range(words):
            time.sleep(pause_s)
            if sender.is_cancelled():
                if "log" in options:
                    with open(options["log"], "a") as log:
                        log.write(f"cancelled after {number}\n")
                break
            if options.get("fail_at") == number:
                error = pb_utils.TritonError(f"SAMPLING_PARAMETERS: word {number}; all words; ask for less")
                sender.send(pb_utils.InferenceResponse(error=error), flags=FINAL)
                return
            sender.send(response(TEXT=f"word{number} "))
        last = response(FINISH_REASON="length", PROMPT_TOKENS=7, COMPLETION_TOKENS=words)
        if options.get("join_end"):
            sender.send(last, flags=FINAL)
        else:
            sender.send(last)
            sender.send(flags=FINAL)
