"""What happens when the engine's process dies, or cannot start. A server of its own each: nobody else wants these."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from llm_own import TEMPLATE, WITHOUT_SPACES, check_that_it_ends_to_take_requests, check_tools
from llm_serving import chat, engine_pids, joined, server, write_llm

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timing]

MESSAGES = chat("Yes.", "1 cup", "What do you hear and see?")


def refusals_until_answered(llm: Any, within_s: float = 240) -> set[str]:
    """What those are told who ask while the engine starts."""
    refusals = set()
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        error = llm.ask(MESSAGES=MESSAGES)[-1].error
        if error is None:
            return refusals
        refusals.add(error)
        time.sleep(0.2)
    raise AssertionError(f"no engine came within {within_s} s: {refusals}")


def test_a_dead_engine_is_told_to_those_it_left_and_started_anew(tmp_path: Path) -> None:
    others = engine_pids()
    with server(write_llm(tmp_path, TEMPLATE, **WITHOUT_SPACES, max_num_seqs=2)) as llm:
        check_tools(llm)
        check_that_it_ends_to_take_requests(llm)
        expected = joined(llm.ask(MESSAGES=MESSAGES))
        (engine,) = engine_pids() - others
        with llm.stream() as stream:
            stream.send(MESSAGES=MESSAGES, SAMPLING_PARAMETERS='{"ignore_eos": true, "max_tokens": 2000}')
            responses = stream.receive()
            next(responses)
            os.kill(engine, signal.SIGKILL)
            last = list(responses)[-1]
        assert last.error is not None and "the engine died while it answered" in last.error
        refused = refusals_until_answered(llm)
        assert refused and all("has died" in words and "send the request again" in words for words in refused)
        assert joined(llm.ask(MESSAGES=MESSAGES)) == expected, "it must be answered as before, by a new engine"
        (another,) = engine_pids() - others
        assert another != engine
    assert not psutil.pid_exists(another), "with the server its engine must go"


def test_an_engine_argument_that_vllm_does_not_know_is_named_when_loading(tmp_path: Path) -> None:
    from embedded.errors import LoadFailed

    refused = pytest.raises(LoadFailed, match="unknown max_modl_len.*did you mean max_model_len")
    with refused, server(write_llm(tmp_path, max_modl_len=5)):
        pytest.fail("such a model must not load")
