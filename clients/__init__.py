"""Calls a server that runs tritonkit's pipelines, or any Triton model, over gRPC, HTTP or shared memory.

from clients import connect

with connect("grpc://127.0.0.1:8001") as client:
    print(client.transcribe("speech.wav").text)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.aio import AsyncClient
    from clients.client import Client
    from clients.connection import connect, connect_async
    from clients.errors import (
        ArrayError,
        ClientError,
        EndpointError,
        NotReady,
        RequestRejected,
        RequestTimeout,
        StreamBroken,
        Unreachable,
    )
    from clients.tracing import traced
    from clients.transports.memory import MemoryTransport
    from clients.values import (
        ChatEvent,
        Delta,
        Detection,
        Detections,
        Event,
        Finished,
        Heard,
        Seen,
        Segment,
        TokenLogprob,
        Transcript,
    )

# Name -> module. Loaded when first used: numpy and the protocols take longer than `tritonkit --help` should.
_HOMES = {
    "AsyncClient": "aio",
    "Client": "client",
    "MemoryTransport": "transports.memory",
    "traced": "tracing",
    **dict.fromkeys(("connect", "connect_async"), "connection"),
    **dict.fromkeys(
        (
            "ArrayError",
            "ClientError",
            "EndpointError",
            "NotReady",
            "RequestRejected",
            "RequestTimeout",
            "StreamBroken",
            "Unreachable",
        ),
        "errors",
    ),
    **dict.fromkeys(
        (
            "ChatEvent",
            "Delta",
            "Detection",
            "Detections",
            "Event",
            "Finished",
            "Heard",
            "Seen",
            "Segment",
            "TokenLogprob",
            "Transcript",
        ),
        "values",
    ),
}

__all__ = [
    "ArrayError",
    "AsyncClient",
    "ChatEvent",
    "Client",
    "ClientError",
    "Delta",
    "Detection",
    "Detections",
    "EndpointError",
    "Event",
    "Finished",
    "Heard",
    "MemoryTransport",
    "NotReady",
    "RequestRejected",
    "RequestTimeout",
    "Seen",
    "Segment",
    "StreamBroken",
    "TokenLogprob",
    "Transcript",
    "Unreachable",
    "connect",
    "connect_async",
    "traced",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'clients' has no attribute '{name}'")
    return getattr(importlib.import_module(f"clients.{_HOMES[name]}"), name)
