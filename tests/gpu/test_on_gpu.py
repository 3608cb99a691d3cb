"""What only a GPU can show: large edges stay there, a full pool is found, parts take what was planned.

Run with `make image && make test-gpu`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.commands.plan import devices_of, pinned_release, vllm_of
from builder.commands.plan_server import ask, measured_here
from builder.handover.running import differences
from builder.handover.verify import Comparison, compare, read_placement
from builder.memory.planning import Ask, all_edges, plan_memory
from builder.pipelines.assistant import assistant
from builder.pipelines.detect import detect
from builder.plan import Plan, make_plan
from clients import connect

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan([assistant(), detect()], f"{pinned_release()}-vllm+py3")


@pytest.fixture(scope="module")
def wanted(plan: Plan) -> Ask:
    return Ask(devices=devices_of("detected"), version=vllm_of(plan.target.container), concurrency=1)


@pytest.fixture(scope="module")
def server(on_gpu) -> Iterator:
    """All of `assistant`, asked once about the shipped recording and photo."""
    with on_gpu(["assistant"]) as server:
        yield server


@pytest.fixture(scope="module")
def asked(server, checkout: Path) -> str:
    """What the server's log says of that one question."""
    before = server.log.stat().st_size
    samples = checkout / "samples"
    with connect(f"grpc://{server.grpc}") as client:
        events = list(client.ask(samples / "sense_and_sensibility.flac", samples / "coffee.jpg", "What is there?"))
    assert [type(one).__name__ for one in events][-1] == "Finished"
    with server.log.open(encoding="utf-8", errors="replace") as log:
        log.seek(before)
        return log.read()


def _compared(plan: Plan, wanted: Ask, name: str, log: str) -> list[Comparison]:
    catalog = plan.catalog("gpu")
    edges = [one for one in all_edges(plan, catalog, wanted) if one.source in _steps(catalog.entries[name])]
    return list(compare(edges, read_placement(log)))


def _steps(entry) -> set[str]:
    return {step["model_name"] for step in entry.ensemble_steps()}


def test_the_large_edges_of_assistant_stay_on_the_device(plan, wanted, asked):
    found = {one.tensor: one for one in _compared(plan, wanted, "assistant", asked)}
    assert [(one.tensor, one.verdict, one.remark) for one in found.values() if one.is_wrong] == []
    assert {name: found[name].places for name in ("audio_features", "pixels", "predictions")} == {
        "audio_features": (0,), "pixels": (0,), "predictions": (0,)}  # fmt: skip


def test_every_model_runs_with_what_was_planned(plan, server):
    catalog = plan.catalog("gpu")
    names = [*_steps(catalog.entries["assistant"]), "assistant"]
    assert differences(catalog, ask(f"http://{server.http}", names).configs) == ()


def test_every_process_takes_what_was_planned(plan, wanted, server, asked, checkout):
    memory = plan_memory(plan, wanted, checkout / ".cache" / "exports")
    found = measured_here(f"http://{server.http}", memory.accounts)
    assert {one.owner for one in found} >= {"tritonserver", "llm", "whisper_decoder", "yolo_preprocess"}
    told = "\n".join(f"{one.owner}: {one.found >> 20} MiB, planned {one.planned >> 20} MiB" for one in found)
    assert not [one.owner for one in found if one.is_far], told


def test_a_pool_that_is_too_small_is_found_in_the_log(plan, wanted, on_gpu, checkout):
    with on_gpu(["detect"], "--cuda-memory-pool-byte-size=0:262144") as server:  # half of what the pixels take
        with connect(f"grpc://{server.grpc}") as client:
            client.detect(checkout / "samples" / "coffee.jpg")
        log = server.log.read_text(encoding="utf-8", errors="replace")
    assert read_placement(log).pool_was_full
    wrong = [one for one in _compared(plan, wanted, "detect", log) if one.is_wrong]
    assert "pixels" in [one.tensor for one in wrong]
    assert all(re.search("the log says that the CUDA pool was full", one.remark) for one in wrong)
