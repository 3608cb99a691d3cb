"""gRPC's exceptions become ours; the same for both gRPC transports."""

from typing import Any

import grpc

from clients.endpoint import Endpoint
from clients.errors import ClientError, Unreachable
from clients.steps import Steps
from clients.transports import problems

ABSENT = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
# A missing model, but also a full queue or a lost server.
UNCLEAR = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE)


def call_problem(error: Any, model: str, endpoint: Endpoint, timeout_s: float) -> Steps[ClientError]:
    """Why a call of a model failed."""
    if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
        return problems.timed_out(model, endpoint, timeout_s, "answer")
    if error.code() in UNCLEAR:
        return (yield from problems.refusal(model, endpoint, error.details()))
    return problems.rejected(model, error.details())


def stream_problem(error: Any, model: str, endpoint: Endpoint, timeout_s: float, has_begun: bool) -> Steps[ClientError]:
    """Why a streamed answer ended early."""
    if has_begun:
        return problems.broken(model, endpoint, f"{error.code().name}: {error.details()}")
    return (yield from call_problem(error, model, endpoint, timeout_s))


def answer_problem(words: str, model: str, endpoint: Endpoint, has_begun: bool) -> Steps[ClientError]:
    """What an error message inside a stream means; a model that has answered before is surely there."""
    if has_begun:
        return problems.rejected(model, words)
    return (yield from problems.refusal(model, endpoint, words, has_answered=True))


def service_problem(error: Any, what: str, endpoint: Endpoint, timeout_s: float) -> ClientError:
    """Why a call that isn't about a model failed."""
    if error.code() == grpc.StatusCode.UNAVAILABLE:
        return problems.unreachable(endpoint, error.details())
    if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
        return problems.timed_out(what, endpoint, timeout_s, "answer")
    return problems.rejected(what, error.details())


def readiness_problem(error: Any, endpoint: Endpoint) -> Unreachable | None:
    """Why the question for readiness failed; None if that is just the answer for a model that isn't there."""
    return None if error.code() in ABSENT else problems.unreachable(endpoint, error.details())


def silence(model: str, endpoint: Endpoint, timeout_s: float, has_begun: bool) -> ClientError:
    """A stream that has said nothing for too long."""
    return problems.timed_out(model, endpoint, timeout_s, "next response" if has_begun else "answer")
