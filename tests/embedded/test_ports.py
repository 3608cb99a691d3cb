"""Free ports and taken ones."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from embedded.errors import CannotStart, PortInUse
from embedded.ports import FreePort, check_port_free


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_taken_port_is_told_with_the_option_to_change(taken: int) -> None:
    with pytest.raises(PortInUse, match=f"port {taken} on 127.0.0.1 is in use .* with --http-port"):
        check_port_free("127.0.0.1", taken, "--http-port")


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(CannotStart, match="cannot listen on 192.0.2.1 port 8000"):
        check_port_free("192.0.2.1", 8000, "--http-port")


def test_free_ports_differ_and_can_be_listened_on() -> None:
    ports = [FreePort("127.0.0.1") for _ in range(20)]
    assert len({port.port for port in ports}) == 20
    for port in ports:
        with socket.create_server(("127.0.0.1", port.port)):
            pass
        port.release()


def test_a_reserved_port_is_not_given_twice() -> None:
    reserved = FreePort("127.0.0.1")
    again = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with again, pytest.raises(OSError, match="in use"):
        again.bind(f"\0tritonkit-port-{reserved.port}")
    reserved.release()
