"""What goes with a call beside its message: the caller's trace, and the key of a server that asks for one."""

import os

from clients.tracing import trace_headers

INFERENCE_KEY = "TRITONKIT_INFERENCE_KEY"  # the environment variable, for the server and its callers alike
KEY_HEADER = "tritonkit-inference-key"
GRPC_PREFIX = "triton-grpc-protocol-"  # Triton's, in front of a restricted protocol's header


def http_headers() -> dict[str, str]:
    """For a call made now over HTTP."""
    return trace_headers() | _key(KEY_HEADER)


def grpc_metadata() -> tuple[tuple[str, str], ...]:
    """For a call made now over gRPC."""
    return tuple((trace_headers() | _key(GRPC_PREFIX + KEY_HEADER)).items())


def _key(name: str) -> dict[str, str]:
    key = os.environ.get(INFERENCE_KEY)
    return {name: key} if key else {}
