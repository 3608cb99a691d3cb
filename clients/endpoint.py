"""An address as text comes in; an Endpoint goes out. Nothing is contacted."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from clients.defaults import DEFAULT_URL
from clients.errors import EndpointError

PORTS = {"grpc": 8001, "http": 8000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a server listens: scheme "grpc" or "http", host, port."""

    scheme: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """Host and port as both protocols write them; IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the server must be on this machine, going by the address alone."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{self.scheme}://{self.address}"


def endpoint(url: str) -> Endpoint:
    """The endpoint that `grpc://host:port` or `http://host:port` names; the port may be left out.

    Raises:
        EndpointError: another scheme, no host, a path, or a port that is no port.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _unusable(url, str(error)) from error
    if parts.scheme not in PORTS or not url.startswith(f"{parts.scheme}://"):
        raise _unusable(url, "no scheme that is known")
    if not parts.hostname or port == 0 or parts.username or parts.path.strip("/") or parts.query or parts.fragment:
        raise _unusable(url, "not just a host and a port")
    return Endpoint(scheme=parts.scheme, host=parts.hostname, port=port or PORTS[parts.scheme])


def _unusable(url: str, found: str) -> EndpointError:
    expected = "grpc://host:port or http://host:port is expected"
    return EndpointError(f"url {url!r}", found, expected, f"A server started with its defaults is at {DEFAULT_URL}.")
