"""The embedded server on a GPU, without docker: the gpu profile, torch in the models' processes, tensors on the device.

Its ONNX backend is tritonkit's own, from the host to the host; so of the edges only what Python models leave on the GPU
lies there. Skipped, with what is missing, where there is no GPU or its libraries are not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnxruntime
import pytest
import torch

from builder.commands.plan import devices_of
from builder.handover.verify import compare, read_placement
from builder.memory.planning import Ask, all_edges
from builder.pipelines.detect import detect
from builder.pipelines.transcribe import transcribe
from builder.plan import make_plan
from clients import connect
from embedded import EmbeddedServer

MISSING = " and ".join(
    name
    for name, is_there in {
        "torch's CUDA build with a GPU that it can use": torch.cuda.is_available(),
        "onnxruntime-gpu": "CUDAExecutionProvider" in onnxruntime.get_available_providers(),
    }.items()
    if not is_there
)
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.server,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {MISSING}: `make test-gpu` brings them to a GPU"),
]
PROFILE = ("--model-config-name=gpu",)


@pytest.fixture(scope="module")
def server(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(
        checkout / "model_repository",
        load=["detect", "transcribe"],
        cache=checkout / ".cache",
        log_file=tmp_path_factory.mktemp("gpu") / "server.log",
        flags=(*PROFILE, "--log-verbose=1"),
    ) as server:
        yield server


def test_a_photo_and_a_recording_go_through_the_gpu_and_come_back_right(server: EmbeddedServer, checkout: Path) -> None:
    samples = checkout / "samples"
    with connect(f"grpc://{server.grpc}", timeout_s=120) as client:
        found = client.detect(samples / "coffee.jpg")
        heard = client.transcribe(samples / "sense_and_sensibility.flac")
    assert [one.label for one in found.items] == ["cup"]
    assert found.items[0].box == pytest.approx((150, 24, 426, 305), abs=5)
    assert "Mr. John Dashwood had then leisure" in heard.text
    plan = make_plan([detect(), transcribe()])
    ask = Ask(devices=devices_of("detected"), version=(0, 24), concurrency=1)
    edges = all_edges(plan, plan.catalog("gpu"), ask, embedded=True)
    placement = read_placement(server.log_file.read_text(encoding="utf-8", errors="replace"))
    compared = {one.tensor: one for one in compare(edges, placement)}
    assert [(name, one.verdict, one.remark) for name, one in compared.items() if one.is_wrong] == []
    assert compared["pixels"].places == (0,)
