"""Load on a Triton server: any models, over gRPC or HTTP, inputs in the message or in system shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clients.connection import transport_for
from clients.endpoint import Endpoint, endpoint
from clients.errors import ClientError
from clients.regions import (
    check_is_safe,
    check_shares_memory,
    delete_region,
    in_region,
    new_name,
    write_region,
)
from clients.tensors import Request, Tensor
from load.plan import Connectable

if TYPE_CHECKING:
    from clients.transports import Transport
    from load.statistics import ModelCounts

CALL_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item:
    """One input: its name in the report, and the request that carries it."""

    name: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TritonTarget:
    """A server at grpc://host:port or http://host:port, and what it is asked.

    Attributes:
        shared_memory: put all inputs but text into system shared memory, once, before the load begins.
        is_ceiling: send the same bytes to the server's cheapest call instead, which runs no model.
    """

    url: str
    items: tuple[Item, ...]
    shared_memory: bool = False
    is_ceiling: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What the items are called."""
        return tuple(item.name for item in self.items)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are asked."""
        return tuple(dict.fromkeys(item.request.model for item in self.items))

    @contextmanager
    def prepared(self) -> Iterator[Connectable]:
        """The messages, made; shared memory is given back at the end.

        Raises:
            ClientError: nobody is there, a model is not loaded, memory can't be shared.
        """
        where = endpoint(self.url)
        with closing(transport_for(where)) as transport:
            streams = {model: transport.signature(model, CALL_S).is_decoupled for model in self.models}
            requests = tuple(item.request for item in self.items)
            with shared(requests, where, transport) if self.shared_memory else nullcontext(requests) as placed:
                yield connectable(where, placed, streams, self.is_ceiling)

    def counts(self) -> Mapping[str, ModelCounts]:
        """Of the models that are asked and all their steps."""
        from load.statistics import model_counts

        return model_counts(endpoint(self.url), self.models)

    def cheapest(self) -> TritonTarget:
        """The same bytes to the question whether the server lives."""
        return replace(self, is_ceiling=True)


def connectable(
    where: Endpoint, requests: tuple[Request, ...], streams: Mapping[str, bool], is_ceiling: bool
) -> Connectable:
    """The requests in the form of the endpoint's protocol; its library is imported only now."""
    if where.scheme == "http":
        from clients.transports.http_messages import generate_body, infer_body
        from load.triton_http import HttpBody, HttpConnectable

        bodies = []
        for one in requests:
            body, length = (generate_body(one), None) if streams[one.model] else infer_body(one)
            bodies.append(HttpBody(model=one.model, body=body, header_length=length))
        return HttpConnectable(endpoint=where, bodies=tuple(bodies), is_ceiling=is_ceiling)
    from clients.transports.messages import WANTS_EMPTY_FINAL, infer_message
    from load.triton_grpc import GrpcConnectable

    messages = [infer_message(one) for one in requests]
    for one, message in zip(requests, messages, strict=True):
        if streams[one.model]:  # an empty last response then tells the end
            message.parameters[WANTS_EMPTY_FINAL].bool_param = True
    return GrpcConnectable(
        endpoint=where,
        messages=tuple(message.SerializeToString() for message in messages),
        streams=tuple(streams[one.model] for one in requests),
        is_ceiling=is_ceiling,
    )


@contextmanager
def shared(requests: tuple[Request, ...], where: Endpoint, transport: Transport) -> Iterator[tuple[Request, ...]]:
    """The requests with their numbers in regions that the server has mapped; an array in many requests has one."""
    check_shares_memory(where)
    check_is_safe(where, transport.server_version(CALL_S))
    regions: dict[int, str] = {}

    def place(tensor: Tensor) -> Tensor:
        if tensor.datatype == "BYTES" or not tensor.byte_size:
            return tensor
        if id(tensor.array) not in regions:
            name = new_name()
            write_region(name, tensor)
            try:
                transport.register_region(name, f"/{name}", tensor.byte_size, CALL_S)
            finally:
                delete_region(name)
            regions[id(tensor.array)] = name
        return in_region(tensor, regions[id(tensor.array)])

    try:
        yield tuple(Request(model=one.model, tensors=tuple(map(place, one.tensors))) for one in requests)
    finally:
        for name in regions.values():
            with suppress(ClientError):  # the server is gone, or still reads for a request that was given up
                transport.unregister_region(name, CALL_S)
