"""Closes the server's management API to everybody without a key.

Triton lets whoever reaches its ports load other models, with a config and files of the caller's own (which is running
code), write trace files anywhere, and change the log. None of that is needed to ask a model something.
"""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field

from starter.keys import MANAGEMENT_HEADER, closed

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
        return closed(",".join(self.closed), MANAGEMENT_HEADER, self.key)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of an HTTP request that may manage the server."""
        return {MANAGEMENT_HEADER: self.key}


def management(host: str, key: str = "") -> Management:
    """The management of a server that listens on `host`; a key of its own if none is given."""
    apis = ALWAYS if is_loopback(host) else (*ALWAYS, *FROM_ELSEWHERE)
    return Management(key or secrets.token_urlsafe(24), apis)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
