"""The words for what can go wrong between here and a server; one function each, used by every transport."""

from clients.endpoint import Endpoint
from clients.errors import (
    ClientError,
    EndpointError,
    NotReady,
    RequestRejected,
    RequestTimeout,
    StreamBroken,
    Unreachable,
)
from clients.steps import Steps
from clients.transports.headers import INFERENCE_KEY

CLOSED = "is restricted, expecting header"  # in Triton's words for a call without the key
PROBE_TIMEOUT_S = 2.0  # for the question "are you there?" that follows a failed call


def unreachable(endpoint: Endpoint, words: str) -> Unreachable:
    advice = "Start one with: tritonkit serve (its ports answer once all models are loaded)."
    return Unreachable(str(endpoint), words, "a running server is needed", advice)


def not_ready(model: str, endpoint: Endpoint, words: str) -> NotReady:
    found = f"not ready on {endpoint} ({words})" if words else f"not ready on {endpoint}"
    advice = "Start a server that has it with: tritonkit serve. The server's log says why a model didn't load."
    return NotReady(model, found, "a loaded model is needed", advice)


def timed_out(
    model: str, endpoint: Endpoint, timeout_s: float, waited_for: str, is_cancelled: bool = True
) -> RequestTimeout:
    fate = "The request was cancelled." if is_cancelled else "The server may still work on it: HTTP can't cancel."
    advice = f"{fate} Give a larger timeout_s if the model needs longer."
    return RequestTimeout(f"{model} on {endpoint}", f"no {waited_for} within {timeout_s:g} s", "", advice)


def rejected(model: str, words: str) -> RequestRejected:
    advice = f"Give this program the server's key, as {INFERENCE_KEY} in its environment." if CLOSED in words else ""
    return RequestRejected(model, words or "the server gave no reason", "", advice)


def broken(model: str, endpoint: Endpoint, words: str) -> StreamBroken:
    advice = "What came so far is good; ask again for the rest."
    return StreamBroken(f"{model} on {endpoint}", words, "the answer had not ended", advice)


def closed(endpoint: Endpoint) -> EndpointError:
    return EndpointError(str(endpoint), "the client was closed", "an open one is needed", "Call connect() again.")


def refusal(model: str, endpoint: Endpoint, words: str, *, has_answered: bool = False) -> Steps[ClientError]:
    """Why a call of a model failed: NotReady or Unreachable if that is it, otherwise RequestRejected.

    A missing model, a full queue and a lost server look alike in the answer, so the server is asked. If it has
    answered with `words` itself, it is there, be it too busy for one more question.
    """
    try:
        is_ready = yield lambda transport: transport.is_ready(model, PROBE_TIMEOUT_S)
    except ClientError:
        return rejected(model, words) if has_answered else unreachable(endpoint, words)
    return rejected(model, words) if is_ready else not_ready(model, endpoint, words)
