"""Ways to reach a server. Each turns Requests into what its protocol carries, and foreign exceptions into ours."""

from collections.abc import AsyncGenerator, Generator
from typing import Protocol

from clients.endpoint import Endpoint
from clients.signature import Signature
from clients.tensors import Request, Response


class Transport(Protocol):
    """What a Client needs of a protocol. All of it may be called from several threads at once."""

    endpoint: Endpoint

    def infer(self, request: Request, timeout_s: float) -> Response:
        """The one answer."""

    def stream(self, request: Request, timeout_s: float) -> Generator[Response, None, None]:
        """The parts of the answer as they come; timeout_s is the longest wait for the next. Closing it cancels."""

    def signature(self, model: str, timeout_s: float) -> Signature:
        """What the model takes."""

    def is_ready(self, model: str, timeout_s: float) -> bool:
        """Whether the model is loaded; Unreachable if nobody answers."""

    def register_region(self, name: str, key: str, byte_size: int, timeout_s: float) -> None:
        """Makes the server map the shared memory object `key`."""

    def unregister_region(self, name: str, timeout_s: float) -> None:
        """Makes the server forget it; RequestRejected while a request still uses it."""

    def region_names(self, timeout_s: float) -> tuple[str, ...]:
        """The regions that the server has mapped, of all its clients."""

    def server_version(self, timeout_s: float) -> str:
        """Triton's version, such as "2.51.0"."""

    def close(self) -> None:
        """Cancels what is in flight and lets go of the connection."""


class AsyncTransport(Protocol):
    """The same for asyncio."""

    endpoint: Endpoint

    async def infer(self, request: Request, timeout_s: float) -> Response: ...

    def stream(self, request: Request, timeout_s: float) -> AsyncGenerator[Response, None]: ...

    async def signature(self, model: str, timeout_s: float) -> Signature: ...

    async def is_ready(self, model: str, timeout_s: float) -> bool: ...

    async def register_region(self, name: str, key: str, byte_size: int, timeout_s: float) -> None: ...

    async def unregister_region(self, name: str, timeout_s: float) -> None: ...

    async def region_names(self, timeout_s: float) -> tuple[str, ...]: ...

    async def server_version(self, timeout_s: float) -> str: ...

    async def close(self) -> None: ...
