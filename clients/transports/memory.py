"""In memory: models are plain functions in this process. For tests, of this package and of what is built on it."""

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import numpy as np

from clients.arrays import tensor
from clients.endpoint import Endpoint
from clients.errors import EndpointError
from clients.signature import Signature
from clients.tensors import Request, Response
from clients.transports import problems

Inputs = Mapping[str, np.ndarray]
Outputs = Mapping[str, Any]
Model = Callable[[Inputs], Outputs | Iterator[Outputs]]

NOWHERE = Endpoint(scheme="memory", host="localhost", port=0)


class MemoryTransport:
    """Transport to functions.

    Each function gets the inputs by name (text as object arrays of bytes) and returns the outputs by name, as arrays
    or text; one that streams returns an iterator of such outputs. What a function raises passes through.
    """

    def __init__(self, models: Mapping[str, Model], signatures: Mapping[str, Signature] | None = None) -> None:
        self.endpoint = NOWHERE
        self._models = dict(models)
        self._signatures = dict(signatures or {})

    def infer(self, request: Request, timeout_s: float) -> Response:
        answer = self._answer(request)
        if not isinstance(answer, Mapping):
            found = "the model streams"
            raise EndpointError(
                request.model, found, "a model that answers once is needed", "Call stream(), not infer()."
            )
        return _response(answer, is_final=True)

    def stream(self, request: Request, timeout_s: float) -> Generator[Response, None, None]:
        answer = self._answer(request)
        parts = iter([answer]) if isinstance(answer, Mapping) else answer
        try:
            for part in parts:
                yield _response(part, is_final=False)
        finally:
            if isinstance(parts, Generator):
                parts.close()

    def signature(self, model: str, timeout_s: float) -> Signature:
        if model not in self._signatures:
            raise _unable(f"tell what {model} takes without a signature for it")
        return self._signatures[model]

    def is_ready(self, model: str, timeout_s: float) -> bool:
        return model in self._models

    def register_region(self, name: str, key: str, byte_size: int, timeout_s: float) -> None:
        raise _unable("share memory")

    def unregister_region(self, name: str, timeout_s: float) -> None:
        raise _unable("share memory")

    def region_names(self, timeout_s: float) -> tuple[str, ...]:
        return ()

    def server_version(self, timeout_s: float) -> str:
        raise _unable("tell a server's version")

    def close(self) -> None:
        self._models.clear()

    def _answer(self, request: Request) -> Outputs | Iterator[Outputs]:
        if request.model not in self._models:
            raise problems.not_ready(request.model, NOWHERE, f"{', '.join(self._models)} are there")
        return self._models[request.model]({one.name: one.array for one in request.tensors})


def _response(outputs: Outputs, is_final: bool) -> Response:
    return Response(outputs={name: tensor(name, value).array for name, value in outputs.items()}, is_final=is_final)


def _unable(what: str) -> EndpointError:
    return EndpointError("memory transport", f"it can't {what}", "grpc:// or http:// can", "")
