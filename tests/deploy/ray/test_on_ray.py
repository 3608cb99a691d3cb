"""Serve and Data on a real Ray cluster of two nodes: one run, examined by several tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = [pytest.mark.server, pytest.mark.slow]
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def seen(checkout: Path, write_stand_ins: Any, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What the program has seen, and what its batch has written. In a network of its own: Ray listens everywhere."""
    folder = tmp_path_factory.mktemp("ray")
    write_stand_ins(folder / "repository")
    namespace = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    command = [*namespace, sys.executable, str(PROGRAMS / "alone.py"), str(PROGRAMS / "on_ray.py"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "TRITONKIT_CACHE": str(checkout / ".cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    lines = (folder / "out.jsonl").read_text().splitlines()
    return SimpleNamespace(**json.loads(done.stdout.splitlines()[-1]), rows=[json.loads(line)["id"] for line in lines])


def test_answers_are_the_same_through_the_handle_and_http_whole_and_streamed(seen: SimpleNamespace) -> None:
    direct = {"finish_reason": "length", "prompt_tokens": 7, "completion_tokens": 3}
    words = ["word0 ", "word1 ", "word2 "]
    assert seen.whole == [{"text": "".join(words), **direct}] * 2
    for events in seen.events:
        assert [one.get("text") for one in events] == [*words, None]
        assert events[-1] == {"event": "finished", "reason": "length", "prompt_tokens": 7, "completion_tokens": 3}


def test_one_replica_serves_several_pipelines(seen: SimpleNamespace) -> None:
    assert seen.echo == {"Y": [1.5]}


def test_problems_have_the_status_that_says_whose_they_are(seen: SimpleNamespace) -> None:
    assert seen.errors == [404, 400, 400]
    assert seen.refused[0] == 422 and "SAMPLING_PARAMETERS: word 0" in seen.refused[1]


def test_replicas_are_added_under_load_on_another_node_and_ended_after_it_with_no_request_failed(
    seen: SimpleNamespace,
) -> None:
    assert (seen.up, seen.nodes, seen.down, seen.failed) == (True, 2, True, [])


def test_killed_replica_is_replaced_and_costs_only_what_was_in_flight(seen: SimpleNamespace) -> None:
    assert seen.killed_lost <= 2 and seen.killed_later == 0
    assert seen.killed_gone, "its server does not outlive it"


def test_engine_that_hangs_is_noticed_and_replaced(seen: SimpleNamespace) -> None:
    assert (seen.hung_replaced, seen.hung_later) == (True, False)


def test_config_file_by_serve_deploy_rolls_the_replicas_over_with_no_request_failed(seen: SimpleNamespace) -> None:
    status, said = seen.deployed
    assert status == 0, said
    rolled_over, statuses, environments = seen.rolled
    assert (rolled_over, statuses) == (True, [200])
    assert environments == ["changed"], "the application's runtime environment reaches its server"


def test_nobody_asking_leaves_no_replica_and_the_first_who_asks_is_answered(seen: SimpleNamespace) -> None:
    assert seen.none_and_back == [True, 200]


def test_no_server_is_left_when_the_application_ends(seen: SimpleNamespace) -> None:
    assert seen.left == 0


def test_batch_spread_over_workers_does_every_row_once(seen: SimpleNamespace) -> None:
    assert seen.batch == [[200, 1], [200, 1]]
    assert seen.same, "with the models in the workers as on a server"
    assert seen.rows == [f"n{number}" for number in range(200) if number != 7]
