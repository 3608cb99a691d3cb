"""A request on its way through a model: what the model sees of it, and how its answers come back."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tritonkit.testing.errors import RuleBroken
from tritonkit.testing.values import (
    InferenceResponse,
    PreferredMemory,
    Tensor,
    TritonError,
    TritonModelException,
    as_on_server,
)

COMPLETE_FINAL = 1


class Answers:
    """The responses to one request, filled by the model from any thread and read by the test."""

    def __init__(self, decoupled: bool) -> None:
        self.decoupled = decoupled
        self.responses: list[InferenceResponse] = []
        self.is_final = False
        self.is_cancelled = False
        self.fault: Exception | None = None
        self.late_fault: Exception | None = None
        self.is_execute_over = threading.Event()
        self._changed = threading.Condition()

    def add(self, response: InferenceResponse | None, *, final: bool) -> None:
        """One more response, the last one, or both."""
        with self._changed:
            if response is not None:
                self.responses.append(response)
            self.is_final = self.is_final or final
            self._changed.notify_all()

    def fail(self, fault: Exception) -> None:
        """End with a fault of the model; a fault after the end is kept apart."""
        with self._changed:
            if self.is_final:
                self.late_fault = self.late_fault or fault
            else:
                self.fault = fault
            self.is_final = True
            self._changed.notify_all()

    def wait_for_more(self, seen: int, timeout_s: float) -> bool:
        """Whether there is a response after the first `seen`, or the end, before the limit."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.responses) > seen or self.is_final, timeout_s)


@as_on_server
class InferenceResponseSender:
    """Sends the responses to one request, from whatever thread."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._lock = threading.Lock()

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        if response is not None and not isinstance(response, InferenceResponse):
            raise TypeError(f"send(response: InferenceResponse, flags: int) was called with {response!r}, {flags!r}")
        with self._lock:
            self._check(response, flags)
            self._answers.add(response, final=flags == COMPLETE_FINAL)

    def _check(self, response: InferenceResponse | None, flags: int) -> None:
        if flags not in (0, COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if self._answers.is_final:
            self._answers.fail(RuleBroken("a response was sent after the one with the FINAL flag"))
            raise TritonModelException("Unable to send response. Response sender has been closed.")
        if response is None and flags == 0:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        if not self._answers.decoupled:
            if response is None and not self._answers.responses:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
                )
            if response is not None and self._answers.responses:
                self._answers.fail(RuleBroken("a model that is not decoupled sent a second response"))
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send more than one response."
                )

    def is_cancelled(self) -> bool:
        return self._answers.is_cancelled


# Runs a BLS request: the responses of another model, as they come.
Runner = Callable[["InferenceRequest", bool], Iterator[InferenceResponse]]


@as_on_server
class InferenceRequest:
    """A request: one that the model was given, or one that it makes to ask another model (BLS)."""

    runner: Runner | None = None  # of the model, set by the class that its module holds

    def __init__(
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        *,
        inputs: Sequence[Tensor],
        requested_output_names: Sequence[str],
        model_name: str,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: Any = None,
        parameters: Mapping[str, bool | int | str] | None = None,
    ) -> None:
        for value in (parameters or {}).values():
            if not isinstance(value, bool | int | str):
                raise TritonModelException(
                    f"Expect parameters values to have type bool/int/str, found type {type(value)}"
                )
        self.model_name = model_name
        self.model_version = model_version
        self._request_id = request_id
        self._correlation_id = correlation_id
        self._inputs = list(inputs)
        self._requested = set(requested_output_names)
        self._flags = flags
        self._timeout = timeout
        self._parameters = json.dumps(dict(parameters or {}))
        self._sender: InferenceResponseSender | None = None
        self.answers: Answers | None = None

    def inputs(self) -> list[Tensor]:
        return self._inputs

    def requested_output_names(self) -> set[str]:
        return self._requested

    def request_id(self) -> str:
        return self._request_id

    def correlation_id(self) -> int | str:
        return self._correlation_id

    def parameters(self) -> str:
        """JSON text, as on the server."""
        return self._parameters

    def timeout(self) -> int:
        return self._timeout

    def flags(self) -> int:
        return self._flags

    def set_flags(self, flags: int) -> None:
        self._flags = flags

    def set_release_flags(self, flags: int) -> None:
        if flags != 1:
            raise RuleBroken("the stand-in cannot give a request back to the scheduler; try this on the real server")

    def is_cancelled(self) -> bool:
        return self.answers is not None and self.answers.is_cancelled

    def get_response_sender(self) -> InferenceResponseSender:
        if self.answers is None:
            raise RuleBroken("a request that the model made itself has no response sender; use exec()")
        if self._sender is None:
            self._sender = InferenceResponseSender(self.answers)
        return self._sender

    def exec(self, decoupled: bool = False) -> InferenceResponse | Iterator[InferenceResponse]:
        """Ask the other model: its response, or with `decoupled` an iterator over its responses."""
        if self.runner is None:
            raise RuleBroken("only a model can ask other models; make the request in execute()")
        responses = type(self).runner(self, decoupled)  # type: ignore[misc]
        return ResponseIterator(responses) if decoupled else next(responses)

    async def async_exec(self, decoupled: bool = False) -> InferenceResponse | Iterator[InferenceResponse]:
        return self.exec(decoupled)


@as_on_server
class ResponseIterator:
    """The responses of a decoupled BLS request."""

    def __init__(self, responses: Iterator[InferenceResponse]) -> None:
        self._responses = responses

    def __iter__(self) -> Iterator[InferenceResponse]:
        return self

    def __next__(self) -> InferenceResponse:
        return next(self._responses)

    def cancel(self) -> None:
        """Exists on the server since 2.57 (25.04)."""
        raise AttributeError("'ResponseIterator' object has no attribute 'cancel' on Triton 2.51")


def error_response(message: str) -> InferenceResponse:
    """A response with an error, as BLS gives it back: its code is INTERNAL, whatever the other model said."""
    return InferenceResponse(error=TritonError(message))
