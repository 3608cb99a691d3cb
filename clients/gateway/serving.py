"""Runs the application in uvicorn until a signal."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

DRAIN_S = 30  # for requests in flight when it is told to end


class Server(uvicorn.Server):
    """uvicorn's, but a signal that ended it in good order is not raised once more at the end."""

    def __init__(self, config: uvicorn.Config, said: str) -> None:
        super().__init__(config)
        self._said = said

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Says that it is ready when it is."""
        await super().startup(sockets)
        if self.started:
            print(self._said, flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ends it at SIGTERM, SIGINT or SIGHUP; at once if it comes again."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._end)
        yield

    def _end(self) -> None:
        if self.should_exit:
            self.force_exit = True
            logging.disable()  # of what is cut off: it was asked for
        self.should_exit = True


async def run(app: Any, listener: socket.socket, said: str) -> int:
    """The exit status."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # the metrics count; a log line would hold who asked when
        timeout_graceful_shutdown=DRAIN_S,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 * 1024,
        server_header=False,
        lifespan="on",
    )
    server = Server(config, said)
    await server.serve(sockets=[listener])
    return 0 if server.started else 1
