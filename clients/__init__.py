"""Calls a server that runs tritonkit's pipelines, or any Triton model, over gRPC, HTTP or shared memory.

from clients import connect

with connect("grpc://127.0.0.1:8001") as client:
    print(client.transcribe("speech.wav").text)
"""

from clients.aio import AsyncClient
from clients.client import Client
from clients.connect import connect, connect_async
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
    Transcript,
)

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
    "Transcript",
    "Unreachable",
    "connect",
    "connect_async",
]
