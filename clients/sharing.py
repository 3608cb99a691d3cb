"""The life of shared memory regions around a request: write, register, use, unregister; never left behind.

A region is unregistered only after its request has ended. A server may still be reading for a moment after a
cancelled one and then refuses; the region is kept in mind and tried again: shortly after, at the next request, and
when the client closes. What a process leaves because it ends without closing is tried once more at exit; what a
killed one leaves is found by the next client on the machine.
"""

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterable

from clients.endpoint import Endpoint
from clients.errors import ClientError, RequestRejected, RequestTimeout
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
from clients.steps import Pause, Steps
from clients.tensors import Request, Tensor
from clients.transports import Transport

CALL_TIMEOUT_S = 10.0
PAUSES_S = (0.002, 0.01, 0.02, 0.05, 0.1, 0.2)
CLOSING_PAUSES_S = (*PAUSES_S, *[0.5] * 20)


class Sharing:
    """What one client has put into shared memory of a server on this machine.

    Args:
        endpoint: the server.
        connect: makes a transport for the last attempt, at the end of a process that never closed its client.
    """

    def __init__(self, endpoint: Endpoint, connect: Callable[[], Transport]) -> None:
        self._endpoint = endpoint
        self._registered: set[str] = set()  # all that the server may have mapped
        self._waiting: set[str] = set()  # those whose request has ended
        self._is_prepared = False
        self._at_exit = weakref.finalize(self, release_at_exit, self._registered, connect)

    def place(self, request: Request, names: list[str]) -> Steps[Request]:
        """The request with its big inputs in regions; their names are added to `names` as they come to be."""
        yield from self._prepare()
        tensors = []
        for tensor in request.tensors:
            if belongs_in_region(tensor):
                tensor = yield from self._share(tensor, names)
            tensors.append(tensor)
        return Request(model=request.model, tensors=tuple(tensors))

    def release(self, names: Iterable[str], pauses_s: tuple[float, ...] = PAUSES_S) -> Steps[None]:
        """Unregisters regions whose request has ended; keeps in mind those that the server still reads."""
        left = set(names)
        self._waiting |= left
        for pause_s in (*pauses_s, None):
            for name in tuple(left):
                if (yield from self._is_unregistered(name)):
                    self._forget(name)
                    left.discard(name)
            if not left or pause_s is None:
                return
            yield Pause(pause_s)

    def close(self) -> Steps[None]:
        """Unregisters everything that is left; warns of a region that the server doesn't let go."""
        yield from self.release(tuple(self._registered), CLOSING_PAUSES_S)
        self._at_exit.detach()
        if self._registered:
            regions = ", ".join(sorted(self._registered))
            message = f"{self._endpoint} still reads {regions}; the next client on this machine unregisters it"
            warnings.warn(message, ResourceWarning, stacklevel=2)

    def _prepare(self) -> Steps[None]:
        if not self._is_prepared:
            check_is_safe(self._endpoint, (yield lambda transport: transport.server_version(CALL_TIMEOUT_S)))
            delete_stale_regions()
            known = yield lambda transport: transport.region_names(CALL_TIMEOUT_S)
            for name in filter(is_stale, known):
                yield from self._is_unregistered(name)
            self._is_prepared = True
        elif self._waiting:
            yield from self.release(tuple(self._waiting), ())

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
        except (RequestRejected, RequestTimeout):
            return False
        except ClientError:
            return True  # the server is gone, and its mappings with it
        return True

    def _forget(self, name: str) -> None:
        self._registered.discard(name)
        self._waiting.discard(name)


def release_at_exit(registered: set[str], connect: Callable[[], Transport]) -> None:
    """Unregisters what a process leaves that ends in the middle of a request."""
    if not registered:
        return
    transport = connect()
    try:
        for name in tuple(registered):
            with contextlib.suppress(ClientError):  # still read: the next client on this machine unregisters it
                transport.unregister_region(name, CALL_TIMEOUT_S)
    finally:
        transport.close()
