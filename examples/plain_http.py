"""Finds the objects in a photo with plain tritonclient, over HTTP: plain_http.py PHOTO [HOST:PORT]"""

import json
import sys

import numpy as np
import tritonclient.http as triton

path, address = sys.argv[1], (sys.argv[2:] or ["127.0.0.1:8000"])[0]
data = np.fromfile(path, dtype=np.uint8)  # the file as it is: jpeg, png, webp, ...

image = triton.InferInput("IMAGE", list(data.shape), "UINT8")
image.set_data_from_numpy(data)
with triton.InferenceServerClient(address, network_timeout=300) as client:
    result = client.infer("detect", [image])
for found in json.loads(result.as_numpy("DETECTIONS")[0])["detections"]:
    print(f"{found['label']} {found['score']:.2f} {[round(edge) for edge in found['box']]}")
