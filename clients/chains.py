"""Several copies of each pipeline on one server, one for each GPU (`tritonkit build --chains`): who answers a request.

The copy that has the fewest requests of this client in flight; among equals they take turns. A copy that isn't loaded
is passed over for a while.
"""

import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import aclosing, closing
from dataclasses import replace
from types import TracebackType

from clients.assistant import PIPELINE
from clients.errors import EndpointError, NotReady
from clients.tensors import Request, Response

PASSED_OVER_S = 5.0


def name_in(chain: int, model: str) -> str:
    """What the builder calls a model's copy in a chain: `detect_gpu1`, `assistant_gpu1_image`."""
    if not chain:
        return model
    base = PIPELINE if model.startswith(f"{PIPELINE}_") else model
    return f"{base}_gpu{chain}{model.removeprefix(base)}"


class Chains:
    """`count` chains; a server without copies has one. Safe for threads."""

    def __init__(self, count: int = 1) -> None:
        if not isinstance(count, int) or count < 1:
            raise EndpointError("chains", f"{count!r}", "a whole number from 1 on is needed")
        self.lock = threading.Lock()
        self.in_flight = [0] * count
        self.absent: dict[str, float] = {}  # copies that were not loaded, and when that was seen
        self._turn = 0

    def copies(self, model: str) -> list[str]:
        """The names of a model's copies; its own name is that of the first."""
        return [name_in(chain, model) for chain in range(len(self.in_flight))]

    def infer(self, request: Request, call: Callable[[Request], Response]) -> Response:
        """The answer of one of the copies, got by `call`."""
        for attempt in self._attempts(request):
            with attempt:
                return call(attempt.request)
        raise AssertionError("the last attempt raises")

    def stream(
        self, request: Request, call: Callable[[Request], Generator[Response, None, None]]
    ) -> Generator[Response, None, None]:
        """The responses of one of the copies, got by `call`."""
        for attempt in self._attempts(request):
            with attempt, closing(call(attempt.request)) as responses:
                for response in responses:
                    attempt.is_last = True  # whoever has answered a part can't be replaced
                    yield response
                return

    async def infer_async(self, request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        """The same for asyncio."""
        for attempt in self._attempts(request):
            with attempt:
                return await call(attempt.request)
        raise AssertionError("the last attempt raises")

    async def stream_async(
        self, request: Request, call: Callable[[Request], AsyncGenerator[Response, None]]
    ) -> AsyncGenerator[Response, None]:
        """The same for asyncio."""
        for attempt in self._attempts(request):
            with attempt:
                async with aclosing(call(attempt.request)) as responses:
                    async for response in responses:
                        attempt.is_last = True
                        yield response
                return

    def _attempts(self, request: Request) -> Iterator["Attempt"]:
        """One for each copy, the best first; those that were not loaded lately come last."""
        with self.lock:
            self._turn += 1
            now, count = time.monotonic(), len(self.in_flight)
            self.absent = {name: at for name, at in self.absent.items() if now - at < PASSED_OVER_S}

            def rank(chain: int) -> tuple[bool, int, int]:
                return name_in(chain, request.model) in self.absent, self.in_flight[chain], (chain - self._turn) % count

            order = sorted(range(count), key=rank)
        for chain in order:
            copy = replace(request, model=name_in(chain, request.model))
            yield Attempt(self, chain, copy, is_last=chain == order[-1])


class Attempt:
    """One copy is asked inside the `with`; that it isn't loaded is swallowed, unless it is the last."""

    def __init__(self, chains: Chains, chain: int, request: Request, *, is_last: bool) -> None:
        self.request, self.is_last = request, is_last
        self._chains, self._chain = chains, chain

    def __enter__(self) -> None:
        with self._chains.lock:
            self._chains.in_flight[self._chain] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        with self._chains.lock:
            self._chains.in_flight[self._chain] -= 1
            if isinstance(error, NotReady):
                self._chains.absent[self.request.model] = time.monotonic()
        return isinstance(error, NotReady) and not self.is_last
