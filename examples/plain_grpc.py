"""Writes down a recording with plain tritonclient, over gRPC: plain_grpc.py RECORDING [HOST:PORT]"""

import sys

import soundfile
import tritonclient.grpc as triton

path, address = sys.argv[1], (sys.argv[2:] or ["127.0.0.1:8001"])[0]
samples, rate_hz = soundfile.read(path, dtype="float32")
if rate_hz != 16000 or samples.ndim != 1:
    sys.exit(f"{path}: {rate_hz} Hz, shape {samples.shape}; mono at 16000 Hz is needed")

audio = triton.InferInput("AUDIO", list(samples.shape), "FP32")
audio.set_data_from_numpy(samples)
with triton.InferenceServerClient(address) as client:
    result = client.infer("transcribe", [audio], client_timeout=300)
print(result.as_numpy("TRANSCRIPT")[0].decode().strip())
