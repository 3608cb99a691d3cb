"""Sends ready-made gRPC messages to a Triton server: bytes out, bytes in.

Messages are made once and sent many times, and an answer is only taken apart if its bytes are not the expected ones:
what the generator costs is little more than gRPC itself.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from tritonclient.grpc import service_pb2 as pb

from clients.endpoint import Endpoint
from clients.transports.grpc import CHANNEL_OPTIONS, END_S
from clients.transports.grpc_aio import read_out
from clients.transports.headers import grpc_metadata
from clients.transports.messages import response_of
from load.outcomes import NoAnswer, Outcome
from load.plan import Answer, Send
from load.streams import StreamedAnswer

SERVICE = "/inference.GRPCInferenceService"
CONNECT_S = 10.0
CODES = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: Outcome.REFUSED,
    grpc.StatusCode.DEADLINE_EXCEEDED: Outcome.LOST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcConnectable:
    """Everything to send, ready-made.

    Attributes:
        messages: a serialized ModelInferRequest per item.
        streams: whether the item's model answers in many parts.
        is_ceiling: send the same bytes to ServerLive instead, to whose message all of them are unknown fields.
    """

    endpoint: Endpoint
    messages: tuple[bytes, ...]
    streams: tuple[bool, ...]
    is_ceiling: bool = False

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Send]:
        async with grpc.aio.insecure_channel(self.endpoint.address, options=CHANNEL_OPTIONS) as channel:
            once = channel.unary_unary(f"{SERVICE}/{'ServerLive' if self.is_ceiling else 'ModelInfer'}")
            stream = channel.unary_stream(f"{SERVICE}/ModelStreamInfer")
            metadata = grpc_metadata()

            async def send(item: int) -> Answer:
                try:
                    if self.streams[item] and not self.is_ceiling:
                        return await _streamed(stream(self.messages[item], metadata=metadata))
                    raw = await once(self.messages[item], metadata=metadata)
                except grpc.RpcError as error:
                    raise _no_answer(error, channel) from error
                return Answer(raw=raw, read=lambda: response_of(pb.ModelInferResponse.FromString(raw)).outputs)

            yield send


async def _streamed(call: Any) -> Answer:
    answer = StreamedAnswer()
    try:
        while True:
            raw = await call.read()
            if raw is grpc.aio.EOF:
                raise NoAnswer(Outcome.FAILED, "the server closed the stream before its end")
            part = pb.ModelStreamInferResponse.FromString(raw)
            if part.error_message:
                raise NoAnswer(Outcome.FAILED, part.error_message)
            response = response_of(part.infer_response)
            answer.add(response.outputs, time.monotonic())
            if response.is_final:
                complete = answer.complete()
                await read_out(call, END_S)
                return complete
    finally:
        call.cancel()


def _no_answer(error: Any, channel: grpc.aio.Channel) -> NoAnswer:
    code, words = error.code(), f"{error.code().name}: {error.details()}"
    if code is grpc.StatusCode.UNAVAILABLE:
        # A full queue and an unreachable server have the same code; only the latter has no connection.
        is_there = channel.get_state() is grpc.ChannelConnectivity.READY
        return NoAnswer(Outcome.REFUSED if is_there else Outcome.FAILED, words)
    return NoAnswer(CODES.get(code, Outcome.FAILED), words)
