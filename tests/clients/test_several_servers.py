"""One gRPC client, two servers behind one target: requests and streams go to both, and to the one that is left."""

import asyncio
import json
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients import Client, Unreachable
from clients.aio import AsyncClient
from clients.endpoint import Endpoint, endpoint
from clients.transports.grpc import GrpcTransport
from clients.transports.grpc_aio import AsyncGrpcTransport

pytestmark = [pytest.mark.server, pytest.mark.timing]
X = np.float32([1.0])


class Both(Endpoint):
    """Two addresses as gRPC lists them; a name in DNS gives it such a list, too."""

    @property
    def address(self) -> str:
        return f"ipv4:{self.host}"


def answered(server: Any) -> int:
    with urllib.request.urlopen(f"{server.http}/v2/models/echo/stats", timeout=5) as answer:
        return int(json.load(answer)["model_stats"][0]["inference_stats"]["success"]["count"])


def test_requests_go_to_all_servers_in_turn_and_past_one_that_is_gone(stand_ins: Any, another: Any, wait: Any) -> None:
    servers = (stand_ins, another)
    where = Both(scheme="grpc", host=",".join(endpoint(one.grpc).address for one in servers), port=0)

    def rise(ask: Any) -> list[int]:
        before = [answered(one) for one in servers]
        ask()
        return [answered(one) - count for one, count in zip(servers, before, strict=True)]

    async def ask_async() -> None:
        async with AsyncClient(AsyncGrpcTransport(where), timeout_s=20) as client:
            await asyncio.gather(*(client.infer("echo", {"X": X}) for _ in range(20)))
            for _ in range(20):
                await client.infer("echo", {"X": X})

    with Client(GrpcTransport(where), timeout_s=20) as client:
        client.infer("echo", {"X": X})
        wait(lambda: min(rise(lambda: [client.infer("echo", {"X": X}) for _ in range(4)])) > 0, "one gets nothing")
        assert rise(lambda: [client.infer("echo", {"X": X}) for _ in range(20)]) == [10, 10], "each in its turn"
        assert min(rise(lambda: asyncio.run(ask_async()))) > 0
        another.kill()
        with suppress(Unreachable):  # a request may meet the connection in the moment of its end
            client.infer("echo", {"X": X})
        assert [client.infer("echo", {"X": X})["Y"].tolist() for _ in range(10)] == [[1.0]] * 10


@pytest.fixture
def another(stand_ins: Any, tmp_path: Path) -> Any:
    """A second server."""
    with type(stand_ins)(tmp_path, ("echo",)) as server:
        yield server
