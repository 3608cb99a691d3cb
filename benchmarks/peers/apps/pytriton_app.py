"""PyTriton: Python functions bound to a tritonserver, batched by its dynamic batcher.

    python -m benchmarks.peers.apps.pytriton_app PORT SERVICE      PORT is that of gRPC; two more above it are taken

Bodies of any length are strings to it: tensors of different lengths would never be batched.
"""

import json
import sys
from typing import Any

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

from benchmarks.peers.work.services import SERVICES
from benchmarks.peers.work.small import ANSWERS, FRAME, WIDTH

FIXED = {"gemm": ((WIDTH,), (ANSWERS,)), "frame": (FRAME, (FRAME[0],))}  # shapes of a row in, a row out


def bound(name: str) -> tuple[Any, Tensor, Tensor]:
    """The function of a service, what it takes and what it gives."""
    service = SERVICES[name]
    work = service.load()

    @batch
    def numbers(body: np.ndarray) -> dict[str, np.ndarray]:
        return {"answer": np.array(work.batch(list(body)), np.float32)}

    @batch
    def texts(body: np.ndarray) -> dict[str, np.ndarray]:
        answers = work.batch([service.read(one[0]) for one in body])
        return {"answer": np.array([[json.dumps(answer).encode()] for answer in answers], np.bytes_)}

    if name in FIXED:
        given, made = FIXED[name]
        return (
            numbers,
            Tensor(name="body", dtype=np.float32, shape=given),
            Tensor(name="answer", dtype=np.float32, shape=made),
        )
    return texts, Tensor(name="body", dtype=np.bytes_, shape=(1,)), Tensor(name="answer", dtype=np.bytes_, shape=(1,))


if __name__ == "__main__":
    port, asked = int(sys.argv[1]), sys.argv[2]
    made = SERVICES[asked]
    function, takes, gives = bound(asked)
    config = TritonConfig(
        grpc_port=port,
        http_port=port + 1,
        metrics_port=port + 2,
        grpc_address="127.0.0.1",
        http_address="127.0.0.1",
    )
    batcher = DynamicBatcher(max_queue_delay_microseconds=int(made.wait_s * 1e6))
    with Triton(config=config) as triton:
        triton.bind(
            model_name=asked,
            infer_func=function,
            inputs=[takes],
            outputs=[gives],
            config=ModelConfig(batching=True, max_batch_size=made.most, batcher=batcher),
        )
        triton.serve()
