"""Flags of tritonserver that close a part of its API to callers without a key, over HTTP and gRPC.

Triton takes a key as a flag, so who may list this machine's processes can read it.
"""

from __future__ import annotations

MANAGEMENT_HEADER = "tritonkit-key"
INFERENCE_HEADER = "tritonkit-inference-key"
# The environment variables that give the keys. The clients have names of their own: this package is not in their image.
MANAGEMENT_KEY = "TRITONKIT_MANAGEMENT_KEY"
INFERENCE_KEY = "TRITONKIT_INFERENCE_KEY"


def closed(apis: str, header: str, key: str) -> tuple[str, ...]:
    """The flags that ask for `header: key`; apis: Triton's names with commas between, such as "trace,logging"."""
    return f"--http-restricted-api={apis}:{header}={key}", f"--grpc-restricted-protocol={apis}:{header}={key}"


def inference_flags(key: str) -> tuple[str, ...]:
    """The flags that let only callers with this key run a model; none for no key."""
    return closed("inference", INFERENCE_HEADER, key) if key else ()
