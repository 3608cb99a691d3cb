"""Closes the server's management API to everybody without a key.

Triton lets whoever reaches its ports load other models, with a config and files of the caller's own (which is running
code), write trace files anywhere, and change the log. None of that is needed to ask a model something.
"""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field

HEADER = "tritonkit-key"
GRPC_PREFIX = "triton-grpc-protocol-"  # Triton's, in front of the name in gRPC metadata
ALWAYS = ("model-repository", "trace", "logging")
# A region is a name in /dev/shm that the server will read, and write answers to. Programs of this machine can do that
# without it; anybody else has no use for it.
FROM_ELSEWHERE = ("shared-memory",)


@dataclass(frozen=True, slots=True)
class Management:
    """The key of one server, and what it closes.

    Attributes:
        key: stays within one run. Triton takes it as a flag, so who may list this machine's processes can read it.
    """

    key: str = field(repr=False)
    closed: tuple[str, ...]

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of tritonserver."""
        apis = ",".join(self.closed)
        return (
            f"--http-restricted-api={apis}:{HEADER}={self.key}",
            f"--grpc-restricted-protocol={apis}:{HEADER}={self.key}",
        )

    @property
    def headers(self) -> dict[str, str]:
        """Headers of an HTTP request that may manage the server."""
        return {HEADER: self.key}


def management(host: str, key: str = "") -> Management:
    """The management of a server that listens on `host`; a key of its own if none is given."""
    closed = ALWAYS if is_loopback(host) else (*ALWAYS, *FROM_ELSEWHERE)
    return Management(key or secrets.token_urlsafe(24), closed)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
