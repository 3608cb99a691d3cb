"""How many requests are answered at once: as many as the gateway was told, or what the engine behind it has room for.

The builder writes the engine's `max_num_seqs` into the config of `llm`, so the limit follows the plan. As many requests
again may wait, so that the engine never runs empty; a further one would only wait longer.
"""

import asyncio
from dataclasses import dataclass

from clients.gateway.upstream import Upstream

USUAL = 32  # while the server has not been reached, and where it doesn't say
WAITING = 2  # times what the engine works on at once
PAUSE_S = 1.0


@dataclass(slots=True)
class Room:
    """most: requests answered at once."""

    most: int = USUAL


async def learn_room(room: Room, upstream: Upstream) -> None:
    """Sets the room as soon as the server answers."""
    while (sequences := await upstream.sequences_at_once()) is None:
        await asyncio.sleep(PAUSE_S)
    room.most = WAITING * sequences or USUAL
