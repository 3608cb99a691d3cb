"""gRPC: every call is one RPC on one channel.

A tritonclient object holds one stream at a time. Here each streamed request has a stream of its own on the shared
connection, so any number of threads may stream, one failure stays with its request, and closing an answer cancels
exactly that answer.
"""

import threading
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import grpc
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from clients.endpoint import Endpoint
from clients.signature import Signature, signature_of
from clients.steps import run
from clients.tensors import MAX_REQUEST_BYTES, Request, Response
from clients.transports import problems
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

CHANNEL_OPTIONS = (
    ("grpc.lb_policy_name", "round_robin"),  # a name with several addresses, such as a headless Service: all in turn
    ("grpc.max_send_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),  # the library's own limit is 4 MiB
    ("grpc.max_reconnect_backoff_ms", 2000),  # a restarted server is found again within seconds, not minutes
)
END_S = 1.0  # from the last response to the end of a stream, at most
FAILED_S = 0.05  # the same after an error, after which a lifeline is left


class GrpcTransport:
    """Transport over gRPC; safe for threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._is_closed = False
        self._channel = grpc.insecure_channel(endpoint.address, options=CHANNEL_OPTIONS)
        self._stub = service_on(self._channel)

    def infer(self, request: Request, timeout_s: float) -> Response:
        message = infer_message(request)
        return response_of(self._call_model(self._service.ModelInfer, message, request.model, timeout_s))

    def stream(self, request: Request, timeout_s: float) -> Generator[Response, None, None]:
        call = self._service.ModelStreamInfer(stream_messages(request), metadata=grpc_metadata())
        watch = Watch(call, timeout_s)
        has_begun = False
        try:
            while True:
                response = self._next(call, watch, request, has_begun)
                has_begun = True
                if response.outputs:
                    yield response
                if response.is_final:
                    return _read_out(call, END_S)
        finally:
            watch.end()
            call.cancel()

    def signature(self, model: str, timeout_s: float) -> Signature:
        message = pb.ModelConfigRequest(name=model)
        return signature_of(self._call_model(self._service.ModelConfig, message, model, timeout_s).config)

    def is_ready(self, model: str, timeout_s: float) -> bool:
        try:
            return self._service.ModelReady(pb.ModelReadyRequest(name=model), timeout=timeout_s).ready
        except grpc.RpcError as error:
            problem = readiness_problem(error, self.endpoint)
            if problem:
                raise problem from error
            return False

    def register_region(self, name: str, key: str, byte_size: int, timeout_s: float) -> None:
        message = pb.SystemSharedMemoryRegisterRequest(name=name, key=key, byte_size=byte_size)
        self._call_service(self._service.SystemSharedMemoryRegister, message, timeout_s)

    def unregister_region(self, name: str, timeout_s: float) -> None:
        message = pb.SystemSharedMemoryUnregisterRequest(name=name)
        self._call_service(self._service.SystemSharedMemoryUnregister, message, timeout_s)

    def region_names(self, timeout_s: float) -> tuple[str, ...]:
        message = pb.SystemSharedMemoryStatusRequest()
        return tuple(self._call_service(self._service.SystemSharedMemoryStatus, message, timeout_s).regions)

    def server_version(self, timeout_s: float) -> str:
        return self._call_service(self._service.ServerMetadata, pb.ServerMetadataRequest(), timeout_s).version

    def close(self) -> None:
        self._is_closed = True
        self._channel.close()

    @property
    def _service(self) -> Any:
        if self._is_closed:
            raise problems.closed(self.endpoint)
        return self._stub

    def _call_model(self, method: Any, message: Any, model: str, timeout_s: float) -> Any:
        try:
            return method(message, timeout=timeout_s, metadata=grpc_metadata())
        except grpc.RpcError as error:
            raise run(call_problem(error, model, self.endpoint, timeout_s), self) from error

    def _call_service(self, method: Any, message: Any, timeout_s: float) -> Any:
        try:
            return method(message, timeout=timeout_s)
        except grpc.RpcError as error:
            raise service_problem(error, str(self.endpoint), self.endpoint, timeout_s) from error

    def _next(self, call: Any, watch: "Watch", request: Request, has_begun: bool) -> Response:
        model = request.model
        try:
            with watch:
                answer = next(answer for answer in call if is_for(request, answer))
        except StopIteration:
            raise problems.broken(model, self.endpoint, "the server closed the stream") from None
        except grpc.RpcError as error:
            if watch.has_fired:
                raise silence(model, self.endpoint, watch.timeout_s, has_begun) from error
            raise run(stream_problem(error, model, self.endpoint, watch.timeout_s, has_begun), self) from error
        if answer.error_message:
            _read_out(call, FAILED_S)
            raise run(answer_problem(answer.error_message, model, self.endpoint, has_begun), self)
        return response_of(answer.infer_response)


def service_on(channel: Any) -> Any:
    """Triton's service on a channel. Its ModelStreamInfer takes a list of messages.

    A single message leaves together with the end of the requests. On the wire it is the same, and an iterator costs a
    thread, or a turn of the event loop for each message and for the end.
    """
    service = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    several = service.ModelStreamInfer
    single = channel.unary_stream(
        "/inference.GRPCInferenceService/ModelStreamInfer",
        request_serializer=pb.ModelInferRequest.SerializeToString,
        response_deserializer=pb.ModelStreamInferResponse.FromString,
    )

    def stream(messages: list[Any], metadata: Any) -> Any:
        if len(messages) == 1:
            return single(messages[0], metadata=metadata)
        return several(iter(messages), metadata=metadata)

    service.ModelStreamInfer = stream
    return service


def _read_out(call: Any, within_s: float) -> None:
    """Wait for the server to close a stream that is at its end.

    Triton 2.51 keeps the whole request, its tensors with it, of a stream that is cancelled while it ends; and it may
    crash (reports 7368 and 8034 of Triton's).
    """
    limit = threading.Timer(within_s, call.cancel)
    limit.start()
    with suppress(grpc.RpcError):
        for _ in call:
            pass
    limit.cancel()


class Watch:
    """Cancels a call whose reader has waited longer than timeout_s; `with watch:` around each wait."""

    def __init__(self, call: Any, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.has_fired = False
        self._call = call
        self._limit: float | None = None  # when the present wait is too long; None while the reader isn't waiting
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="tritonkit-watch", daemon=True).start()

    def __enter__(self) -> None:
        self._limit = time.monotonic() + self.timeout_s

    def __exit__(self, *_: object) -> None:
        self._limit = None

    def end(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        pause_s = self.timeout_s
        while not self._ended.wait(pause_s):
            limit = self._limit
            pause_s = self.timeout_s if limit is None else limit - time.monotonic()
            if pause_s <= 0:
                self.has_fired = True
                self._call.cancel()
                return
