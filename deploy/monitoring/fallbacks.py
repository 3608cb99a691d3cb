"""What a server says only in its log, as metrics: which of its memory pools was full, so that copies got slower.

Triton has no metric of a pool's fill level. It says once in each process that a buffer did not fit, and takes the next
slower kind of memory from then on.
"""

import ctypes
import os
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
GIVE_BACK_BYTES = 64 * 2**20
# Of Linux' fallocate(), which Python has no name for.
KEEP_SIZE, PUNCH_HOLE, BLOCK_BYTES = 1, 2, 4096


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


def followed(
    path: Path, is_over: Callable[[], bool] = lambda: False, give_back_bytes: int = GIVE_BACK_BYTES
) -> Iterator[str]:
    """The lines of a file from its beginning, and those that come; a file that is not there yet is waited for.

    Of what has been read no more than `give_back_bytes` stay on the disk: the server never begins a new file, and a log
    would fill its volume. The file keeps its length, with a hole at its beginning; whoever follows it anew begins
    behind the hole.
    """
    file: Any = None
    rest, given_back = b"", 0
    try:
        while True:
            if file is None and path.exists():
                file = path.open("r+b" if os.access(path, os.W_OK) else "rb")
                given_back = beyond_hole(file)
            part = file.read(2**16) if file else b""
            *lines, rest = (rest + part).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
            if file and file.writable() and file.tell() - given_back > give_back_bytes:
                give_back(file.fileno(), file.tell())
                given_back = file.tell()
            if not part:
                if is_over():
                    return
                time.sleep(POLL_S)
    finally:
        if file is not None:
            file.close()


def beyond_hole(file: Any) -> int:
    """Goes to the first byte that is still there; its place."""
    try:
        return int(file.seek(os.lseek(file.fileno(), 0, os.SEEK_DATA)))
    except OSError:  # there is none, or the file system knows of no holes
        return int(file.seek(0, os.SEEK_END if is_one_hole(file) else os.SEEK_SET))


def is_one_hole(file: Any) -> bool:
    """Whether nothing of a file is on the disk."""
    return os.fstat(file.fileno()).st_blocks == 0


def give_back(file: int, end: int) -> None:
    """Frees the blocks of a file before `end`; does nothing where the file system can't."""
    ctypes.CDLL(None, use_errno=True).fallocate(
        file, PUNCH_HOLE | KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(end - end % BLOCK_BYTES)
    )
