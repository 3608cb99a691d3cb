"""The keys of the management API, and the flags that `serve` adds; no server is needed."""

from __future__ import annotations

import pytest

from embedded.flags import controlled
from embedded.restrict import management


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
