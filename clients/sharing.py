"""The life of shared memory regions around a request: write, register, use, unregister; never left behind.

A region is unregistered only after its request has ended. A server may still be reading for a moment after a
cancelled one and then refuses; the region is kept in mind and tried again: shortly after, at the next request, and
when the client closes. What a process leaves because it ends without closing is tried once more at exit; what a
killed one leaves is found by the next client on the machine.
"""

import warnings
import weakref
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import replace

from clients.endpoint import Endpoint
from clients.errors import EndpointError, RequestRejected, RequestTimeout, Unreachable
from clients.regions import (
    belongs_in_region,
    check_is_safe,
    delete_region,
    delete_stale_regions,
    in_region,
    is_stale,
    new_name,
    write_region,
)
from clients.steps import Pause, Steps, run
from clients.tensors import Request, Tensor
from clients.transports import Transport

CALL_TIMEOUT_S = 5.0
PAUSES_S = (0.002, 0.01, 0.02, 0.05, 0.1, 0.2)
CLOSING_PAUSES_S = (*PAUSES_S, *[0.5] * 20)


class Sharing:
    """What one client has put into shared memory of a server on this machine.

    Args:
        endpoint: the server.
        connect: makes a transport for the last attempts, when the client is closed or its process ends.
    """

    def __init__(self, endpoint: Endpoint, connect: Callable[[], Transport]) -> None:
        self._endpoint = endpoint
        self._registered: set[str] = set()  # all that the server may have mapped
        self._waiting: set[str] = set()  # those whose request has ended
        self._connect = connect
        self._is_prepared = False
        self._is_closed = False
        self._at_exit = weakref.finalize(self, release_at_exit, self._registered, connect)

    def place(self, request: Request, names: list[str]) -> Steps[Request]:
        """The request with its big inputs in regions; their names are added to `names` as they come to be."""
        if not any(belongs_in_region(tensor) for tensor in request.tensors):
            return request
        yield from self._prepare()
        tensors = []
        for tensor in request.tensors:
            if belongs_in_region(tensor):
                tensor = yield from self._share(tensor, names)
            tensors.append(tensor)
        return replace(request, tensors=tuple(tensors))

    def release(self, names: Iterable[str], pauses_s: tuple[float, ...] = PAUSES_S) -> Steps[None]:
        """Unregisters regions whose request has ended; keeps in mind those that the server still reads."""
        if not self._is_closed:  # otherwise close() has done it
            yield from self._release(names, pauses_s)

    def _release(self, names: Iterable[str], pauses_s: tuple[float, ...]) -> Steps[None]:
        left = set(names)
        self._waiting |= left
        with suppress(RequestTimeout, EndpointError):  # no answer, or the client was closed: not again and again
            for pause_s in (0.0, *pauses_s):
                yield Pause(pause_s)
                for name in tuple(left):
                    if (yield from self._is_unregistered(name)):
                        self._forget(name)
                        left.discard(name)
                if not left:
                    return

    def close(self) -> None:
        """Unregisters everything that is left; warns of a region that the server doesn't let go.

        To be called when the client's own transport is closed, so that no request is in flight any more.
        """
        self._is_closed = True
        self._at_exit.detach()
        if not self._registered:
            return
        with closing(self._connect()) as transport:
            run(self._release(tuple(self._registered), CLOSING_PAUSES_S), transport)
        if self._registered:
            regions = ", ".join(sorted(self._registered))
            message = f"{self._endpoint} still reads {regions}; the next client on this machine unregisters it"
            warnings.warn(message, ResourceWarning, stacklevel=3)

    def _prepare(self) -> Steps[None]:
        if not self._is_prepared:
            check_is_safe(self._endpoint, (yield lambda transport: transport.server_version(CALL_TIMEOUT_S)))
            delete_stale_regions()
            known = yield lambda transport: transport.region_names(CALL_TIMEOUT_S)
            yield from self._release(filter(is_stale, known), ())
            self._is_prepared = True
        elif self._waiting:
            yield from self._release(tuple(self._waiting), ())

    def _share(self, tensor: Tensor, names: list[str]) -> Steps[Tensor]:
        name, size = new_name(), tensor.byte_size
        write_region(name, tensor)
        try:
            self._registered.add(name)
            names.append(name)
            yield lambda transport: transport.register_region(name, f"/{name}", size, CALL_TIMEOUT_S)
        except RequestRejected as error:
            expected = "the server must see this machine's /dev/shm and allow clients to share it"
            advice = "In a container: --ipc=host. From 26.04 on: --allow-client-shm=true. Or leave shared_memory out."
            raise RequestRejected(str(self._endpoint), error.found, expected, advice) from error
        finally:
            delete_region(name)
        return in_region(tensor, name)

    def _is_unregistered(self, name: str) -> Steps[bool]:
        try:
            yield lambda transport: transport.unregister_region(name, CALL_TIMEOUT_S)
        except Unreachable:
            return True  # the server is gone, and its mappings with it
        except RequestRejected:
            return False  # still read
        return True

    def _forget(self, name: str) -> None:
        self._registered.discard(name)
        self._waiting.discard(name)


def release_at_exit(registered: set[str], connect: Callable[[], Transport]) -> None:
    """Unregisters what a process leaves that ends in the middle of a request."""
    if not registered:
        return
    with closing(connect()) as transport, suppress(RequestTimeout):
        for name in tuple(registered):
            with suppress(RequestRejected, Unreachable):  # still read: the next client on this machine unregisters it
                transport.unregister_region(name, CALL_TIMEOUT_S)
