"""The gateway's socket."""

import socket

from clients.gateway.command import listening


def test_each_piece_of_an_answer_leaves_at_once() -> None:
    """Otherwise the kernel holds the second piece until the first is acknowledged, which clients do after 40 ms."""
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
