"""Asks about a recording and a photo with plain tritonclient: plain_grpc_stream.py RECORDING PHOTO QUESTION [HOST:PORT]

The pipeline ends in a language model, so it is decoupled: it answers many times, and only a stream can be used.
"""

import queue
import sys

import numpy as np
import soundfile
import tritonclient.grpc as triton

recording, photo, question = sys.argv[1:4]
address = (sys.argv[4:] or ["127.0.0.1:8001"])[0]


def tensor(name: str, array: np.ndarray, datatype: str) -> triton.InferInput:
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


def text(name: str, words: str) -> triton.InferInput:
    return tensor(name, np.array([words.encode()], dtype=object), "BYTES")  # never dtype "S" or "U"


inputs = [
    tensor("AUDIO", soundfile.read(recording, dtype="float32")[0], "FP32"),  # mono, 16 kHz
    tensor("IMAGE", np.fromfile(photo, dtype=np.uint8), "UINT8"),  # the file as it is
    text("QUESTION", question),
    text("SAMPLING_PARAMETERS", '{"max_tokens": 100, "temperature": 0}'),
]
answers: queue.Queue = queue.Queue()
with triton.InferenceServerClient(address) as client:
    client.start_stream(lambda result, error: answers.put((result, error)))
    try:
        # Without enable_empty_final_response nothing would tell that the last answer was the last.
        client.async_stream_infer("assistant", inputs, enable_empty_final_response=True)
        while True:
            result, error = answers.get(timeout=300)  # with a limit: a lost server must not hang us
            if error:
                sys.exit(f"assistant: {error.message()}")
            for name in ("TRANSCRIPT", "DETECTIONS"):
                value = result.as_numpy(name)
                if value is not None:
                    print(f"{name}: {value[0].decode()}")
            delta = result.as_numpy("TEXT")
            if delta is not None:
                print(delta[0].decode(), end="", flush=True)
            if result.get_response().parameters["triton_final_response"].bool_param:
                break
    finally:
        client.stop_stream(cancel_requests=True)  # how this stops the engine, too: docs/clients.md, Lifelines
print()
