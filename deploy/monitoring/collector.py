"""A small collector of traces: OTLP over HTTP in, each trace as a tree out, once nothing more has come for it."""

import gzip
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from types import TracebackType
from typing import Self

from deploy.errors import DeployError
from deploy.monitoring.spans import JSON, Span, read_spans

PATH = "/v1/traces"
MOST_BYTES = 16 * 2**20
MOST_TRACES = 1000  # that wait for their last spans; then the oldest goes out as it is


class Collector:
    """Collects while the block lasts. `url` is where exporters send to."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._traces: dict[str, list[Span]] = {}
        self._changed: dict[str, float] = {}
        self._news = Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                status, words = collector.take(self)
                self.send_response(status)
                self.send_header("content-type", JSON)
                self.send_header("content-length", str(len(words)))
                self.end_headers()
                self.wfile.write(words)

            def log_message(self, format: str, *args: object) -> None:
                """The traces are what is to be seen."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_port}{PATH}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, name="collector", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        """Keeps what an exporter sent; the status and the body of the answer."""
        length = request.headers.get("content-length", "")
        if request.path != PATH or not length.isdigit() or int(length) > MOST_BYTES:
            request.close_connection = True
            return (404, b"{}") if request.path != PATH else (413, b"{}")
        body = request.rfile.read(int(length))
        try:
            if request.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            spans = read_spans(body, request.headers.get("content-type", ""))
        except (DeployError, OSError, EOFError):
            return 400, b"{}"
        with self._news:
            for span in spans:
                self._traces.setdefault(span.trace, []).append(span)
                self._changed[span.trace] = time.monotonic()
            self._news.notify_all()
        return 200, b"{}"

    def traces(self, quiet_s: float = 2.0) -> Iterator[list[Span]]:
        """Each trace once nothing has come for it for so long; goes on for ever."""
        while True:
            with self._news:
                now = time.monotonic()
                due = [trace for trace, at in self._changed.items() if now - at >= quiet_s]
                due += list(self._changed)[: max(0, len(self._changed) - MOST_TRACES)]
                if not due:
                    oldest = min(self._changed.values(), default=None)
                    self._news.wait(None if oldest is None else max(0.01, quiet_s - (now - oldest)))
                    continue
                found = [self._traces.pop(trace) for trace in dict.fromkeys(due)]
                for trace in dict.fromkeys(due):
                    del self._changed[trace]
            yield from found
