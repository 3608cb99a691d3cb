"""Load on an HTTP endpoint that is no Triton: a real server of the standard library in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from load import Closed, LoadPlan, Outcome, Post, PostTarget, run


class Moody(BaseHTTPRequestHandler):
    """Answers with what it was asked and a new number; what it is asked for decides the rest."""

    protocol_version = "HTTP/1.1"
    number = 0

    def do_POST(self) -> None:
        Moody.number += 1
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        is_busy = asked == "busy" and Moody.number % 2 == 0
        said = f"{asked}?" if asked == "liar" and Moody.number > 20 else asked
        body = json.dumps({"id": Moody.number, "choices": [{"text": said}]}).encode()
        self.send_response(429 if is_busy else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Moody.number = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Moody) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/completions"
        server.shutdown()
        thread.join()


def test_only_what_must_be_equal_is_compared_and_refusals_are_told_from_lies(url: str) -> None:
    names = ("honest", "liar", "busy")
    posts = tuple(Post(name=name, body=name.encode(), json_paths=("choices.0.text",)) for name in names)
    # The third of the first three, asked alone, and the number that it gets, is odd: it is answered.
    result = run(LoadPlan(target=PostTarget(url=url, posts=posts), arrivals=Closed(callers=3), seconds=0.5, warmup_s=0))
    seen = {name: {one.outcome for one in result.records if names[one.item] == name} for name in names}
    assert seen["honest"] == {Outcome.RIGHT}
    assert Outcome.WRONG in seen["liar"] and seen["liar"] <= {Outcome.RIGHT, Outcome.WRONG}
    assert Outcome.REFUSED in seen["busy"] and seen["busy"] <= {Outcome.RIGHT, Outcome.REFUSED}
    assert result.models == {} and "choices.0.text: 'liar?' instead of 'liar'" in " ".join(result.problems)
