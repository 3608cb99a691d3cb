"""Which row is to blame when the server goes: the scheduling alone, with a server that this file plays."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from batch.errors import RowError, ServerLost
from batch.journal import Journal
from batch.progress import Progress
from batch.rows import Row
from batch.running import Asking, run_rows, waiting
from clients.errors import NotReady, RequestTimeout, Unreachable


class MortalServer:
    """Dies whenever a row with `kills` reaches it, with everything in flight; is back at once."""

    pipeline = "llm"

    def __init__(self) -> None:
        self.deaths = 0
        self.asked: list[str] = []
        self._life = asyncio.Event()

    async def __call__(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(fields["name"])
        life = self._life
        await asyncio.sleep(0.001)
        if fields.get("kills"):
            self.deaths += 1
            self._life = asyncio.Event()
            life.set()
        else:
            await asyncio.sleep(0.004)
        if life.is_set():
            raise Unreachable("server", "connection reset")
        return {"name": fields["name"]}

    async def wait_for_ready(self, *models: str, limit_s: float) -> None:
        return


def rows(count: int, **special: dict[str, Any]) -> list[Row]:
    return [
        Row(key=str(n), number=n, id=str(n), fields={"name": str(n), **special.get(f"n{n}", {})}) for n in range(count)
    ]


def done(tmp_path: Path, work: list[Row], server: Any, in_flight: int = 4) -> list[dict[str, Any]]:
    asking = Asking(server, server, patience_s=1)
    with Journal(tmp_path / "journal", {}) as journal:
        asyncio.run(run_rows(iter(work), asking, journal, Progress(len(work), 0, 0, in_flight)))
        return list(journal.records(row.key for row in work))


def test_row_that_kills_the_server_is_bad_and_its_neighbours_are_not(tmp_path: Path) -> None:
    server = MortalServer()
    records = done(tmp_path, rows(20, n3={"kills": True}), server)
    assert [one["key"] for one in records if "reason" in one] == ["3"]
    assert "lost 3 times while it did this row" in records[3]["reason"]
    assert server.deaths == 3


def test_no_more_are_in_flight_than_allowed_and_rows_are_taken_only_when_there_is_room(tmp_path: Path) -> None:
    open_now, most, taken = 0, 0, 0

    class Slow:
        pipeline = "llm"

        async def __call__(self, fields: Mapping[str, Any]) -> dict[str, Any]:
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            await asyncio.sleep(0.002)
            assert taken - int(fields["name"]) <= 5
            open_now -= 1
            return {}

    def lazily() -> Any:
        nonlocal taken
        for row in rows(30):
            taken += 1
            yield row

    asking = Asking(Slow(), Slow(), patience_s=1)  # type: ignore[arg-type]
    with Journal(tmp_path / "journal", {}) as journal:
        asyncio.run(run_rows(lazily(), asking, journal, Progress(30, 0, 0, 4)))
    assert most == 4


def test_row_that_never_ends_is_bad_after_three_tries() -> None:
    tries = []

    async def caller(fields: Mapping[str, Any]) -> dict[str, Any]:
        tries.append(1)
        raise RequestTimeout("llm", "no answer within 1 s")

    asking = Asking(SimpleNamespace(), caller, patience_s=1)  # type: ignore[arg-type]
    with pytest.raises(RowError, match="tried 3 times"):
        asyncio.run(asking.answer(rows(1)[0]))
    assert len(tries) == 3


def test_server_that_stays_away_stops_everything_and_what_was_done_is_kept(tmp_path: Path) -> None:
    class Leaving(MortalServer):
        async def __call__(self, fields: Mapping[str, Any]) -> dict[str, Any]:
            if int(fields["name"]) >= 5:
                raise Unreachable("server", "refused")
            return {}

        async def wait_for_ready(self, *models: str, limit_s: float) -> None:
            raise NotReady("llm", "not there")

    with pytest.raises(ServerLost, match="did not come back within 1 s"):
        done(tmp_path, rows(20), Leaving())
    with Journal(tmp_path / "journal", {}) as journal:
        assert set(journal.done) == {"0", "1", "2", "3", "4"}


def test_what_waits_in_the_server_is_in_its_queues_and_in_the_engine_of_its_language_model() -> None:
    metrics = b"""# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="yolo",version="1"} 3
nv_inference_pending_request_count{model="llm",version="1"} 0
nv_inference_request_success{model="yolo",version="1"} 99
tritonkit_llm_waiting_requests{model="llm",version="1"} 4
tritonkit_llm_running_requests{model="llm",version="1"} 8
"""
    assert waiting(metrics) == 7
