"""What a gateway in front of the server says when it has waited for long enough."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from clients import RequestTimeout, connect


class GivesUp(BaseHTTPRequestHandler):
    """Answers 504 without a word, as gateways do."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(504)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def proxy() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), GivesUp) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_gateway_that_gives_up_is_a_timeout_like_any_other(proxy: str) -> None:
    """CLI-08: 504 with an empty body, for one answer and for a streamed one."""
    with connect(proxy, timeout_s=5) as client:
        with pytest.raises(RequestTimeout, match="transcribe on .*behind a proxy"):
            client.transcribe(np.ones(9, np.float32))
        with pytest.raises(RequestTimeout, match="llm on "):
            list(client.chat("Hi"))
