"""How many requests Triton leaves out of their caller's trace, over gRPC and over HTTP.

    python -m benchmarks.lost_traces --requests 300

One request after the other, by NVIDIA's own clients, each with a `traceparent` of its own; a request is lost if the
server's spans for it are not in that trace.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http

from benchmarks.batcher_models import write_models
from deploy.monitoring.collector import Collector
from deploy.monitoring.spans import trace_flags
from embedded import EmbeddedServer

CHECKOUT = Path(__file__).parents[1]
MODEL = "timed"
EXPORTED_S = 3.0  # the exporter sends twice a second


def ask(client: Any, module: Any, requests: int) -> set[str]:
    """The ids of the traces of so many requests."""
    tensor = module.InferInput("X", [1, 4], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 4), np.float32))
    traces = [uuid.uuid4().hex for _ in range(requests)]
    for trace in traces:
        client.infer(MODEL, [tensor], headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    return set(traces)


def main() -> None:
    """Print a line for each protocol and round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=300, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    came: set[str] = set()

    def collect() -> None:
        for trace in collector.traces(0.2):
            came.update(span.trace for span in trace)

    with tempfile.TemporaryDirectory() as folder, Collector() as collector:
        Thread(target=collect, daemon=True).start()
        write_models(Path(folder, "repository"), Path(folder, "work"), models=[MODEL])
        flags = trace_flags(collector.url, rate=1_000_000)
        with EmbeddedServer(Path(folder, "repository"), load=[MODEL], cache=CHECKOUT / ".cache", flags=flags) as server:
            for _ in range(told.rounds):
                for module, address in ((tritonclient.grpc, server.grpc), (tritonclient.http, server.http)):
                    with module.InferenceServerClient(address) as client:
                        sent = ask(client, module, told.requests)
                    time.sleep(EXPORTED_S)
                    print(f"{module.__name__}: {len(sent - came)} of {len(sent)} lost", flush=True)


if __name__ == "__main__":
    main()
