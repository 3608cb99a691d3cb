"""gRPC for asyncio; every call is one RPC on one channel, as in grpc.py."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
from tritonclient.grpc import service_pb2 as pb

from clients.endpoint import Endpoint
from clients.signature import Signature, signature_of
from clients.steps import run_async
from clients.tensors import Request, Response
from clients.transports import problems
from clients.transports.grpc import CHANNEL_OPTIONS, END_S, FAILED_S, service_on
from clients.transports.grpc_errors import (
    answer_problem,
    call_problem,
    readiness_problem,
    service_problem,
    silence,
    stream_problem,
)
from clients.transports.headers import grpc_metadata
from clients.transports.messages import infer_message, is_for, response_of, stream_messages


class AsyncGrpcTransport:
    """AsyncTransport over gRPC; belongs to the event loop in which it is made."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._is_closed = False
        self._channel = grpc.aio.insecure_channel(endpoint.address, options=CHANNEL_OPTIONS)
        self._stub = service_on(self._channel)

    async def infer(self, request: Request, timeout_s: float) -> Response:
        message = infer_message(request)
        return response_of(await self._call_model(self._service.ModelInfer, message, request.model, timeout_s))

    async def stream(self, request: Request, timeout_s: float) -> AsyncGenerator[Response, None]:
        call = self._service.ModelStreamInfer(stream_messages(request), metadata=grpc_metadata())
        has_begun = False
        try:
            while True:
                response = await self._next(call, request, timeout_s, has_begun)
                has_begun = True
                if response.outputs:
                    yield response
                if response.is_final:
                    await read_out(call, END_S)
                    return
        finally:
            call.cancel()

    async def signature(self, model: str, timeout_s: float) -> Signature:
        message = pb.ModelConfigRequest(name=model)
        return signature_of((await self._call_model(self._service.ModelConfig, message, model, timeout_s)).config)

    async def is_ready(self, model: str, timeout_s: float) -> bool:
        try:
            return (await self._service.ModelReady(pb.ModelReadyRequest(name=model), timeout=timeout_s)).ready
        except grpc.RpcError as error:
            problem = readiness_problem(error, self.endpoint)
            if problem:
                raise problem from error
            return False

    async def register_region(self, name: str, key: str, byte_size: int, timeout_s: float) -> None:
        message = pb.SystemSharedMemoryRegisterRequest(name=name, key=key, byte_size=byte_size)
        await self._call_service(self._service.SystemSharedMemoryRegister, message, timeout_s)

    async def unregister_region(self, name: str, timeout_s: float) -> None:
        message = pb.SystemSharedMemoryUnregisterRequest(name=name)
        await self._call_service(self._service.SystemSharedMemoryUnregister, message, timeout_s)

    async def region_names(self, timeout_s: float) -> tuple[str, ...]:
        message = pb.SystemSharedMemoryStatusRequest()
        return tuple((await self._call_service(self._service.SystemSharedMemoryStatus, message, timeout_s)).regions)

    async def server_version(self, timeout_s: float) -> str:
        return (await self._call_service(self._service.ServerMetadata, pb.ServerMetadataRequest(), timeout_s)).version

    async def close(self) -> None:
        self._is_closed = True
        await self._channel.close()

    @property
    def _service(self) -> Any:
        if self._is_closed:
            raise problems.closed(self.endpoint)
        return self._stub

    async def _call_model(self, method: Any, message: Any, model: str, timeout_s: float) -> Any:
        try:
            return await method(message, timeout=timeout_s, metadata=grpc_metadata())
        except grpc.RpcError as error:
            raise await run_async(call_problem(error, model, self.endpoint, timeout_s), self) from error

    async def _call_service(self, method: Any, message: Any, timeout_s: float) -> Any:
        try:
            return await method(message, timeout=timeout_s)
        except grpc.RpcError as error:
            raise service_problem(error, str(self.endpoint), self.endpoint, timeout_s) from error

    async def _next(self, call: Any, request: Request, timeout_s: float, has_begun: bool) -> Response:
        model = request.model
        try:
            async with asyncio.timeout(timeout_s):
                answer = await call.read()
                while answer is not grpc.aio.EOF and not is_for(request, answer):
                    answer = await call.read()
        except TimeoutError as error:
            raise silence(model, self.endpoint, timeout_s, has_begun) from error
        except grpc.RpcError as error:
            problem = stream_problem(error, model, self.endpoint, timeout_s, has_begun)
            raise await run_async(problem, self) from error
        if answer is grpc.aio.EOF:
            raise problems.broken(model, self.endpoint, "the server closed the stream")
        if answer.error_message:
            await read_out(call, FAILED_S)
            raise await run_async(answer_problem(answer.error_message, model, self.endpoint, has_begun), self)
        return response_of(answer.infer_response)


async def read_out(call: Any, within_s: float) -> None:
    """Wait for the server to close a stream that is at its end; see grpc.py."""
    with suppress(grpc.RpcError, TimeoutError):
        async with asyncio.timeout(within_s):
            while await call.read() is not grpc.aio.EOF:
                pass
