"""What a refusal means when the server is asked further, and is too busy to answer."""

from __future__ import annotations

from typing import Any

import pytest

from clients.endpoint import Endpoint
from clients.errors import RequestRejected, Unreachable
from clients.steps import run
from clients.transports import problems
from clients.transports.grpc_errors import answer_problem

WHERE = Endpoint(scheme="grpc", host="127.0.0.1", port=1)


class Busy:
    """A server that does not answer in time whether a model is ready."""

    def is_ready(self, model: str, timeout_s: float) -> bool:
        raise problems.unreachable(WHERE, "Deadline Exceeded")


@pytest.fixture
def busy() -> Any:
    return Busy()


def test_words_inside_a_stream_are_the_model_s_though_nothing_more_is_answered(busy: Any) -> None:
    found = run(answer_problem("TEXT: 3; 4 is needed", "llm", WHERE, has_begun=False), busy)
    assert isinstance(found, RequestRejected) and "TEXT: 3; 4 is needed" in str(found)


def test_a_call_that_failed_while_nothing_answers_did_not_reach_the_server(busy: Any) -> None:
    assert isinstance(run(problems.refusal("llm", WHERE, "Socket closed"), busy), Unreachable)
