"""HTTP: /infer for models that answer once, /generate_stream for those that stream.

urllib3 underneath rather than tritonclient.http, whose objects may not be shared by threads and which can't read
server-sent events.
"""

import json
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from urllib.parse import quote

import urllib3
from google.protobuf import json_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from clients.endpoint import Endpoint
from clients.lifelines import lifeline_of
from clients.signature import Signature, signature_of
from clients.steps import run
from clients.tensors import Request, Response
from clients.transports import problems
from clients.transports.headers import http_headers
from clients.transports.http_messages import (
    HEADER_LENGTH,
    error_words,
    generate_body,
    generate_response,
    infer_body,
    infer_response,
    sse_documents,
)

CONNECTIONS_KEPT = 32
GATEWAY_TIMEOUT = 504
MODELS = "/v2/models"
SHARED_MEMORY = "/v2/systemsharedmemory"


class HttpTransport:
    """Transport over HTTP; safe for threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._pool = urllib3.HTTPConnectionPool(
            endpoint.host, endpoint.port, maxsize=CONNECTIONS_KEPT, block=False, retries=False
        )

    def infer(self, request: Request, timeout_s: float) -> Response:
        body, header_length = infer_body(request)
        headers = {HEADER_LENGTH: str(header_length), "Content-Type": "application/octet-stream"}
        path = f"{MODELS}/{_name(request.model)}/infer"
        reply = self._call("POST", path, request.model, timeout_s, body=body, headers=headers)
        length = reply.headers.get(HEADER_LENGTH)
        return infer_response(reply.data, None if length is None else int(length))

    def stream(self, request: Request, timeout_s: float) -> Generator[Response, None, None]:
        with ExitStack() as replies:  # closed without reading the rest: the server notices and cancels both requests
            if request.lifeline:
                replies.enter_context(closing(self._generate(lifeline_of(request), timeout_s)))
            reply = replies.enter_context(closing(self._generate(request, timeout_s)))
            with self._translated(request.model, timeout_s, has_begun=True):
                for document in sse_documents(reply.stream()):
                    if "error" in document:
                        raise problems.rejected(request.model, document["error"])
                    yield generate_response(document)

    def signature(self, model: str, timeout_s: float) -> Signature:
        config = ModelConfig()
        document = self._call("GET", f"{MODELS}/{_name(model)}/config", model, timeout_s).data
        json_format.Parse(document, config, ignore_unknown_fields=True)
        return signature_of(config)

    def is_ready(self, model: str, timeout_s: float) -> bool:
        try:
            return self._send("GET", f"{MODELS}/{_name(model)}/ready", timeout_s).status == 200
        except urllib3.exceptions.HTTPError as error:
            raise problems.unreachable(self.endpoint, str(error)) from error

    def register_region(self, name: str, key: str, byte_size: int, timeout_s: float) -> None:
        body = json.dumps({"key": key, "offset": 0, "byte_size": byte_size}).encode()
        self._call("POST", f"{SHARED_MEMORY}/region/{_name(name)}/register", f"region {name}", timeout_s, body=body)

    def unregister_region(self, name: str, timeout_s: float) -> None:
        self._call("POST", f"{SHARED_MEMORY}/region/{_name(name)}/unregister", f"region {name}", timeout_s)

    def region_names(self, timeout_s: float) -> tuple[str, ...]:
        regions = json.loads(self._call("GET", f"{SHARED_MEMORY}/status", "regions", timeout_s).data)
        return tuple(one["name"] for one in regions)

    def server_version(self, timeout_s: float) -> str:
        return json.loads(self._call("GET", "/v2", "server", timeout_s).data)["version"]

    def close(self) -> None:
        self._pool.close()

    def _generate(self, request: Request, timeout_s: float) -> Any:
        """The reply, as soon as it begins."""
        path = f"{MODELS}/{_name(request.model)}/generate_stream"
        body = generate_body(request)
        return self._call("POST", path, request.model, timeout_s, body=body, preload_content=False)

    def _send(self, method: str, path: str, timeout_s: float, **more: Any) -> Any:
        timeout = urllib3.Timeout(connect=timeout_s, read=timeout_s)
        headers = {**more.pop("headers", {}), **http_headers()}
        return self._pool.request(method, path, timeout=timeout, headers=headers, **more)

    def _call(self, method: str, path: str, what: str, timeout_s: float, **more: Any) -> Any:
        with self._translated(what, timeout_s, has_begun=False):
            reply = self._send(method, path, timeout_s, **more)
            if reply.status == 200:
                return reply
            words = error_words(reply.data) or f"HTTP status {reply.status}"
        if reply.status == GATEWAY_TIMEOUT:
            raise problems.timed_out(what, self.endpoint, timeout_s, f"answer from behind a proxy ({words})", False)
        if path.startswith(MODELS):
            raise run(problems.refusal(what, self.endpoint, words), self)
        raise problems.rejected(what, words)

    @contextmanager
    def _translated(self, what: str, timeout_s: float, has_begun: bool) -> Generator[None, None, None]:
        try:
            yield
        except urllib3.exceptions.ReadTimeoutError as error:
            waited_for = "next response" if has_begun else "answer"
            raise problems.timed_out(what, self.endpoint, timeout_s, waited_for, is_cancelled=has_begun) from error
        except urllib3.exceptions.HTTPError as error:
            if has_begun:
                raise problems.broken(what, self.endpoint, str(error)) from error
            raise problems.unreachable(self.endpoint, str(error)) from error


def _name(text: str) -> str:
    return quote(text, safe="")
