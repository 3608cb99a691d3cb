"""From an address to a client. Nothing is contacted; a protocol's library is imported only for its scheme."""

from clients.aio import AsyncClient
from clients.client import Client
from clients.defaults import DEFAULT_URL, TIMEOUT_S
from clients.endpoint import Endpoint, endpoint
from clients.errors import EndpointError
from clients.regions import check_shares_memory
from clients.sharing import Sharing
from clients.transports import Transport


def connect(
    url: str = DEFAULT_URL, *, timeout_s: float = TIMEOUT_S, shared_memory: bool = False, chains: int = 1
) -> Client:
    """A client for the server at grpc://host:port or http://host:port; a context manager.

    Args:
        timeout_s: the longest wait, in seconds, for an answer or for the next event of a streamed one.
        shared_memory: passes big inputs through /dev/shm to a server on this machine.
        chains: on how many GPUs the server has a copy of each pipeline (`tritonkit build --chains`); requests go to the
            copy that has the least to do.

    Raises:
        EndpointError: the address can't be used, or shared memory can't be with it.
    """
    where = endpoint(url)
    sharing = _sharing(where) if shared_memory else None
    return Client(transport_for(where), timeout_s=timeout_s, sharing=sharing, chains=chains)


def connect_async(
    url: str = DEFAULT_URL, *, timeout_s: float = TIMEOUT_S, shared_memory: bool = False, chains: int = 1
) -> AsyncClient:
    """The same for asyncio, over gRPC; call it inside the event loop.

    Raises:
        EndpointError: the address can't be used, or shared memory can't be with it.
    """
    where = endpoint(url)
    if where.scheme != "grpc":
        advice = f"Triton's gRPC port is usually one above: grpc://{where.host}:8001."
        raise EndpointError(str(where), "no asyncio client speaks HTTP", "grpc:// is needed", advice)
    from clients.transports.grpc_aio import AsyncGrpcTransport

    sharing = _sharing(where) if shared_memory else None
    return AsyncClient(AsyncGrpcTransport(where), timeout_s=timeout_s, sharing=sharing, chains=chains)


def transport_for(where: Endpoint) -> Transport:
    """The transport that speaks the endpoint's scheme."""
    if where.scheme == "http":
        from clients.transports.http import HttpTransport

        return HttpTransport(where)
    from clients.transports.grpc import GrpcTransport

    return GrpcTransport(where)


def _sharing(where: Endpoint) -> Sharing:
    check_shares_memory(where)
    return Sharing(where, lambda: transport_for(where))
