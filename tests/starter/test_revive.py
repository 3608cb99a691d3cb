"""A model whose process dies again and again; the rest needs a server: test_on_server.py, embedded/test_revive.py."""

from __future__ import annotations

from starter.revive import MOST_AN_HOUR, Reviver
from starter.server import Server


def test_a_model_that_dies_again_and_again_stays_down() -> None:
    said: list[str] = []
    reviver = Reviver(Server(address="127.0.0.1:1"), said.append)
    assert [reviver._may_live("llm") for _ in range(MOST_AN_HOUR + 1)] == [True] * MOST_AN_HOUR + [False]
    assert reviver.given_up == {"llm"}
    assert said == [
        f"llm: its process has died {MOST_AN_HOUR + 1} times within an hour; it stays down. "
        "Look for the reason in the server's log, then start the server again."
    ]
