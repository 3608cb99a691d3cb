"""How many requests the gateway answers at once follows the engine behind it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clients.gateway import room
from clients.gateway.app import grpc_transport
from clients.gateway.room import USUAL, WAITING, Room, learn_room
from clients.gateway.upstream import Upstream


class Says:
    """A server that answers the question with each of these in turn."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)

    async def sequences_at_once(self) -> int | None:
        return self.answers.pop(0)


def learned(*answers: int | None) -> int:
    found = Room(most=1)
    asyncio.run(learn_room(found, Says(*answers)))  # type: ignore[arg-type]
    return found.most


def test_as_many_again_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PAUSE_S", 0.001)
    assert learned(5) == WAITING * 5
    assert learned(None, None, 8) == WAITING * 8, "the server may come up later"
    assert learned(0) == USUAL, "it doesn't say"


@pytest.mark.server
def test_the_built_repository_tells_what_its_engine_works_on_at_once(served: Any) -> None:
    async def ask(server: str, chains: int) -> int | None:
        upstream = Upstream(grpc_transport(server)(), 5, chains)
        try:
            return await upstream.sequences_at_once()
        finally:
            await upstream.close()

    assert asyncio.run(ask(f"grpc://{served.grpc}", 1)) == 16
    assert asyncio.run(ask("grpc://127.0.0.1:1", 1)) is None
