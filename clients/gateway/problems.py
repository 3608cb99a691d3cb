"""What a caller is told when something is wrong: OpenAI's shape, with the status that its clients act on."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

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
from clients.gateway.rejections import is_away, is_full, is_wrong_input

# OpenAI's word for each status; its clients choose their exception by the status alone.
KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
# The form of every error, as OpenAPI describes it.
_TEXT_OR_NULL = {"type": ["string", "null"]}
ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": _TEXT_OR_NULL,
                "code": _TEXT_OR_NULL,
            },
        }
    },
}


class Problem(Exception):
    """A request that is answered with an error.

    Attributes:
        status: of HTTP.
        code: a word for programs, such as "unsupported_parameter".
        param: the part of the request that it is about.
        headers: of the answer, beside those that every answer of its status has.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers = dict(headers or {})

    def as_json(self) -> dict[str, Any]:
        """OpenAI's error object."""
        kind = KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def as_response(self, retry_after_s: int) -> Response:
        """The response; callers that may try again are told when."""
        headers = {**self.headers, **({"Retry-After": str(retry_after_s)} if self.status in (429, 503) else {})}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        # ASCII: a message may quote half of a surrogate pair, which has no form in UTF-8.
        body = json.dumps(self.as_json()).encode("ascii")
        return Response(body, self.status, headers, media_type="application/json")


def unsupported(param: str, why: str) -> Problem:
    """A parameter of OpenAI's that can't be honoured here: refused by name, never dropped."""
    return Problem(400, f"{param}: {why}. Leave it out.", code="unsupported_parameter", param=param)


def invalid(param: str, found: str, expected: str, advice: str = "") -> Problem:
    """A parameter with a value that can't be."""
    words = f"{param}: {found}; {expected}." + (f" {advice}" if advice else "")
    return Problem(400, words, code="invalid_value", param=param)


def problem_from(error: ClientError) -> Problem:
    """What a caller is told when the call of the server failed."""
    words = str(error)
    match error:
        case RequestRejected() if is_full(error):
            return Problem(429, f"{words}. The server's queue is full.", code="queue_full")
        case RequestRejected() if is_away(error):
            return Problem(503, words, code="model_not_ready")
        case RequestRejected() if not is_wrong_input(error.found):
            return Problem(502, words, code="server_failed")
        case ArrayError() | RequestRejected():
            return Problem(400, words, code="invalid_value")
        case Unreachable() | EndpointError():
            return Problem(503, words, code="server_unreachable")
        case NotReady():
            return Problem(503, words, code="model_not_ready")
        case RequestTimeout():
            return Problem(504, words, code="timeout")
        case StreamBroken():
            return Problem(502, words, code="stream_broken")
    return Problem(500, words, code="internal_error")
