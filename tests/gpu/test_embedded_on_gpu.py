"""The embedded server on a GPU, without docker: the gpu profile, torch in the models' processes, tensors on the device.

Its ONNX backend is tritonkit's own, from the host to the host; so of the edges only what Python models leave on the GPU
lies there. Skipped, with what is missing, where there is no GPU or its libraries are not installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.commands.plan import devices_of
from builder.handover.verify import Comparison, compare, read_placement
from builder.memory.planning import Ask, all_edges
from builder.pipeline import Pipeline
from builder.pipelines.detect import detect
from builder.pipelines.transcribe import transcribe
from builder.plan import make_plan
from clients import connect
from embedded import EmbeddedServer
from tests.needs_gpu import MISSING, marks

pytestmark = [pytest.mark.server, *marks(MISSING)]
PROFILE = ("--model-config-name=gpu",)
GPU = 0


def server_of(checkout: Path, log: Path, load: list[str], *flags: str) -> EmbeddedServer:
    """The shipped models with the gpu profile; what the server says stands in the log."""
    flags = (*PROFILE, "--log-verbose=1", *flags)
    return EmbeddedServer(
        checkout / "model_repository", load=load, cache=checkout / ".cache", log_file=log, flags=flags
    )


def compared_with(log: Path, *pipelines: Pipeline) -> dict[str, Comparison]:
    """Each edge by its tensor: where it was predicted on this machine's GPU, where the server says it lay."""
    plan = make_plan(pipelines)
    ask = Ask(devices=devices_of("detected"), version=(0, 24), concurrency=1)
    edges = all_edges(plan, plan.catalog("gpu"), ask, embedded=True)
    placement = read_placement(log.read_text(encoding="utf-8", errors="replace"))
    return {one.tensor: one for one in compare(edges, placement)}


def test_a_photo_and_a_recording_go_through_the_gpu_and_come_back_right(checkout: Path, tmp_path: Path) -> None:
    samples = checkout / "samples"
    with (
        server_of(checkout, tmp_path / "log", ["detect", "transcribe"]) as server,
        connect(f"grpc://{server.grpc}", timeout_s=120) as client,
    ):
        found = client.detect(samples / "coffee.jpg")
        heard = client.transcribe(samples / "sense_and_sensibility.flac")
    assert [one.label for one in found.items] == ["cup"]
    assert found.items[0].box == pytest.approx((150, 24, 426, 305), abs=5)
    assert "Mr. John Dashwood had then leisure" in heard.text
    compared = compared_with(tmp_path / "log", detect(), transcribe())
    assert [(name, one.verdict, one.remark) for name, one in compared.items() if one.is_wrong] == []
    assert compared["pixels"].places == (GPU,)


def test_a_pool_that_is_too_small_is_found_in_the_log(checkout: Path, tmp_path: Path) -> None:
    pool = "--cuda-memory-pool-byte-size=0:262144"  # half of what the pixels take
    with (
        server_of(checkout, tmp_path / "log", ["detect"], pool) as server,
        connect(f"grpc://{server.grpc}", timeout_s=120) as client,
    ):
        assert [one.label for one in client.detect(checkout / "samples" / "coffee.jpg").items] == ["cup"]
    pixels = compared_with(tmp_path / "log", detect())["pixels"]
    assert pixels.is_wrong and "the log says that the CUDA pool was full" in pixels.remark
