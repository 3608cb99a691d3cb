"""The keys of the management API, and the flags that `serve` adds; no server is needed."""

from __future__ import annotations

import pytest

from embedded.restrict import management
from embedded.revive import MOST_AN_HOUR, Reviver, controlled, why


@pytest.mark.parametrize(
    ("host", "closed"),
    [
        ("127.0.0.1", "model-repository,trace,logging"),
        ("localhost", "model-repository,trace,logging"),
        ("::1", "model-repository,trace,logging"),
        ("0.0.0.0", "model-repository,trace,logging,shared-memory"),
        ("server.example", "model-repository,trace,logging,shared-memory"),
    ],
)
def test_management_is_closed_and_shared_memory_too_where_others_reach_it(host: str, closed: str) -> None:
    found = management(host, "secret")
    assert found.flags == (
        f"--http-restricted-api={closed}:tritonkit-key=secret",
        f"--grpc-restricted-protocol={closed}:tritonkit-key=secret",
    )
    assert found.headers == {"tritonkit-key": "secret"}
    assert "secret" not in repr(found)


def test_every_run_has_a_key_of_its_own() -> None:
    first, second = management("127.0.0.1").key, management("127.0.0.1").key
    assert first != second and len(first) >= 32


def test_everything_is_loaded_at_the_start_unless_something_else_was_said() -> None:
    assert controlled(None, ("--x",)) == ("--model-control-mode=explicit", "--load-model=*", "--x")
    assert controlled(("a",), ("--x",)) == ("--x",)
    assert controlled(None, ("--model-control-mode=poll",)) == ("--model-control-mode=poll",)


def test_a_model_that_dies_again_and_again_stays_down() -> None:
    said: list[str] = []
    reviver = Reviver("127.0.0.1:1", {}, said.append)
    assert [reviver._may_live("llm") for _ in range(MOST_AN_HOUR + 1)] == [True] * MOST_AN_HOUR + [False]
    assert said == [
        f"llm: its process has died {MOST_AN_HOUR + 1} times within an hour; it stays down. "
        "Look for the reason in the server's log, then start the server again."
    ]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (b'{"error": "no such model"}', "no such model"),
        (b"Forbidden", "Forbidden"),
        (b"[]", "[]"),
        (b"", "no reason given"),
    ],
)
def test_the_words_of_the_server_are_kept(words: bytes, shown: str) -> None:
    assert why(words) == shown
