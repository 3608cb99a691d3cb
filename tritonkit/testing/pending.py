"""A request that a model is working on, and the form of arrays on their way to a model and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tritonkit.testing.checks import check_response
from tritonkit.testing.errors import ModelError, RuleBroken
from tritonkit.testing.requests import InferenceRequest, error_response
from tritonkit.testing.values import DATA_TYPES, InferenceResponse, Tensor

if TYPE_CHECKING:
    from tritonkit.testing.model import Model

Arrays: TypeAlias = "dict[str, np.ndarray]"


class Pending:
    """A request that a model is working on: iterate over its responses, or cancel it."""

    def __init__(self, model: Model, request: InferenceRequest, batch_size: int | None) -> None:
        assert request.answers is not None  # made together with it
        self.model = model
        self.request = request
        self.answers = request.answers
        self._batch_size = batch_size

    def cancel(self) -> None:
        """Tell the model that nobody waits any more; it has to look, by `is_cancelled()`."""
        self.answers.is_cancelled = True

    def __iter__(self) -> Iterator[Arrays]:
        """The answers as arrays; the first error is raised."""
        for outcome in self.outcomes():
            if isinstance(outcome, ModelError):
                raise outcome
            yield outcome

    def outcomes(self) -> Iterator[Arrays | ModelError]:
        """The answers as arrays or errors: a stream may go on after an error."""
        try:
            for response in self.responses():
                if (error := response.error()) is not None:
                    yield ModelError(error.message(), error.code().name)
                else:
                    yield {tensor.name(): as_received(tensor.as_numpy()) for tensor in self._wanted(response)}
        except ModelError as error:
            yield error

    def responses(self) -> Iterator[InferenceResponse]:
        """The responses as the model made them, errors included, checked."""
        seen = 0
        while True:
            if not self.answers.wait_for_more(seen, self.model.timeout_s):
                raise RuleBroken(
                    f"{self.model.name}: no answer and no FINAL flag within {self.model.timeout_s:g} s. Every request "
                    "needs a response, or its sender's FINAL flag; a client of the server would wait for ever"
                )
            if seen < len(self.answers.responses):
                response = self.answers.responses[seen]
                seen += 1
                if self.model.strict:
                    check_response(self.model.config, response, self._batch_size)
                yield response
            elif self.answers.fault is not None:
                raise self.answers.fault
            else:
                break
        if self.model.strict:
            self.answers.is_execute_over.wait(self.model.timeout_s)
            if self.answers.late_fault is not None:
                raise self.answers.late_fault

    def responses_for_bls(self) -> Iterator[InferenceResponse]:
        """The responses as another model gets them: errors as values, the bare end of a stream as an empty response."""
        last: InferenceResponse | None = None
        try:
            for response in self.responses():
                last = response
                error = response.error()
                yield error_response(error.message()) if error else InferenceResponse(self._wanted(response))
        except ModelError as error:
            yield error_response(error.message)
            return
        if self.model.is_decoupled and (last is None or not last.has_error()):
            yield InferenceResponse()

    def _wanted(self, response: InferenceResponse) -> list[Tensor]:
        known = [entry["name"] for entry in self.model.config["output"]]
        wanted = known if self.model.is_decoupled else self.request.requested_output_names()
        return [tensor for tensor in response.output_tensors() if tensor.name() in wanted]


def as_sent(value: Any, entry: dict[str, Any] | None) -> np.ndarray:
    """The array that arrives at the model: a copy, text as bytes."""
    if isinstance(value, np.ndarray):
        return text_as_bytes(value) if value.dtype.kind in "OUS" else np.array(value, order="C", subok=True)
    dtype = DATA_TYPES[entry["data_type"]] if entry is not None else None
    array = np.array([value] if isinstance(value, str | bytes) else value, dtype=dtype)
    return text_as_bytes(array) if array.dtype.kind in "OUS" else array


def as_received(array: np.ndarray) -> np.ndarray:
    """The array that arrives at the client."""
    return text_as_bytes(array) if array.dtype.kind in "OS" else array


def text_as_bytes(array: np.ndarray) -> np.ndarray:
    """An array of bytes objects: bytes as they are, everything else as its text in UTF-8."""
    result = np.empty(array.shape, dtype=np.object_)
    flat = [item if isinstance(item, bytes) else str(item).encode() for item in array.ravel()]
    result.ravel()[:] = flat
    return result
