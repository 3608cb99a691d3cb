"""What a server says only in its log, as metrics: which of its memory pools was full, so that copies got slower.

Triton has no metric of a pool's fill level. It says once in each process that a buffer did not fit, and takes the next
slower kind of memory from then on.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# The server's words, and the pool that was full.
WORDS = {
    "falling back to pinned system memory": "cuda",
    "falling back to non-pinned system memory": "pinned",
}
POLL_S = 0.5


class Fallbacks:
    """Counts fallbacks, for Prometheus."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter

        self.registry = CollectorRegistry()
        words = "Times that the server said in its log that a memory pool was full"
        self.counter = Counter("tritonkit_server_fallbacks", words, ("pool",), registry=self.registry)
        for pool in WORDS.values():
            self.counter.labels(pool)

    def read(self, line: str) -> None:
        """One line of the log."""
        for words, pool in WORDS.items():
            if words in line:
                self.counter.labels(pool).inc()

    def serve(self, port: int, host: str) -> int:
        """Serves them on http://host:port/metrics; the port, also when 0 was asked for."""
        from prometheus_client import start_http_server

        server, _ = start_http_server(port, host, registry=self.registry)
        return server.server_port


def followed(path: Path, is_over: Callable[[], bool] = lambda: False) -> Iterator[str]:
    """The lines of a file from its beginning, and those that come; a file that is not there yet is waited for."""
    file: Any = None
    rest = ""
    try:
        while True:
            if file is None and path.exists():
                file = path.open(encoding="utf-8", errors="replace")
            part = file.read(2**16) if file else ""
            *lines, rest = (rest + part).split("\n")
            yield from lines
            if not part:
                if is_over():
                    return
                time.sleep(POLL_S)
    finally:
        if file is not None:
            file.close()
