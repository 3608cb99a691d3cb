"""Ports: free ones for this run, and a clear word when one is taken."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Mapping
from pathlib import Path

from embedded.errors import CannotStart, PortInUse, ServerError

# Below the range from which the kernel takes ports for outgoing connections, so that none is taken between
# our choice and the moment when the server opens it (which is after all models have loaded).
FREE_PORTS = range(20000, 32768)
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def check_port_free(host: str, port: int, option: str) -> None:
    """Return if the server will be able to listen there.

    Raises:
        PortInUse: another process listens on it.
        CannotStart: the port or the address cannot be used at all.
    """
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"port {port} on {host} is in use by another process. "
                f"Stop that process, or choose another port with {option} (0 takes a free one)."
            ) from error
        raise CannotStart(f"cannot listen on {host} port {port}: {error.strerror}. Choose another address.") from error


class FreePort:
    """A port that nobody uses, reserved among the embedded servers of this machine until `release()`."""

    def __init__(self, host: str) -> None:
        for port in random.SystemRandom().sample(usable_ports(), 200):
            reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                # A name in Linux' abstract namespace: no file, gone with this process.
                reservation.bind(f"\0tritonkit-port-{port}")
                check_port_free(host, port, "")
            except (OSError, PortInUse):
                reservation.close()
                continue
            self.port = port
            self._reservation = reservation
            return
        raise CannotStart(f"no free port found on {host} among 200 tried. Name the ports yourself.")

    def release(self) -> None:
        """Let others have it."""
        self._reservation.close()


class Ports:
    """The ports of one server, by endpoint; those asked for as 0 become free ones."""

    def __init__(self, host: str, asked: Mapping[str, int]) -> None:
        self.host = host
        self.asked = dict(asked)
        self.taken: dict[str, int] = {}
        self._reserved: list[FreePort] = []

    def take(self) -> None:
        """Choose the free ones, check the others.

        Raises:
            PortInUse: one that was asked for is taken by another process.
        """
        for endpoint, port in self.asked.items():
            if port == 0:
                self._reserved.append(FreePort(self.host))
                port = self._reserved[-1].port
            else:
                check_port_free(self.host, port, f"--{endpoint}-port")
            self.taken[endpoint] = port

    def release(self) -> None:
        """Let others have the free ones."""
        while self._reserved:
            self._reserved.pop().release()

    def address(self, endpoint: str) -> str:
        """`host:port` for a client on this machine.

        Raises:
            ServerError: nothing was started yet.
        """
        if endpoint not in self.taken:
            raise ServerError("the server has no address before start(). Call start(), or use it in a `with`.")
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        return f"{host}:{self.taken[endpoint]}"


def usable_ports() -> list[int]:
    """`FREE_PORTS` without those that the kernel gives to outgoing connections."""
    first, last = map(int, EPHEMERAL.read_text().split()) if EPHEMERAL.exists() else (32768, 60999)
    ports = [port for port in FREE_PORTS if not first <= port <= last]
    return ports or list(FREE_PORTS)
