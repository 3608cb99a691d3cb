"""Sending the responses of one request, and asking whether anyone still wants them.

In: a decoupled response sender. Out: responses; exactly one FINAL flag, whatever happens.
"""

import threading
from typing import Any

import triton_python_backend_utils as pb_utils


class Replies:
    """The responses of one request. Without the FINAL flag Triton would keep the request for ever."""

    def __init__(self, request: Any) -> None:
        self._sender = request.get_response_sender()
        self._lock = threading.Lock()
        self._ended = False

    def send(self, tensors: list[Any]) -> None:
        with self._lock:
            if not self._ended:
                self._sender.send(pb_utils.InferenceResponse(output_tensors=tensors))

    def end(self, tensors: list[Any] | None = None) -> None:
        """Send the last response; without tensors it is nothing but the FINAL flag."""
        last = [] if tensors is None else [pb_utils.InferenceResponse(output_tensors=tensors)]
        with self._lock:
            if not self._ended:
                self._ended = True
                self._sender.send(*last, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def fail(self, message: str, code: int | None = None) -> None:
        message = message.encode(errors="backslashreplace").decode()  # JSON may hold halves of pairs, Triton takes none
        error = pb_utils.TritonError(message) if code is None else pb_utils.TritonError(message, code)
        with self._lock:
            if not self._ended:
                self._ended = True
                self._sender.send(
                    pb_utils.InferenceResponse(output_tensors=[], error=error),
                    flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                )

    def fail_as_wrong_input(self, message: str) -> None:
        self.fail(message, pb_utils.TritonError.INVALID_ARG)

    def fail_as_cancelled(self) -> None:
        self.fail("llm: the request was cancelled", pb_utils.TritonError.CANCELLED)

    def fail_as_full(self, count: int) -> None:
        found = f"llm: too many requests: {count} are being answered or wait"
        self.fail(f"{found}; fewer are needed; send it later", pb_utils.TritonError.UNAVAILABLE)

    def is_cancelled(self) -> bool:
        """Whether the client went away. Asks the server: to be called beside the event loop, not in it."""
        with self._lock:
            return not self._ended and bool(self._sender.is_cancelled())
