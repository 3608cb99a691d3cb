"""Where the real server puts every edge, read from its own log, beside what was predicted."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import soundfile
import tritonclient.grpc as grpcclient
from typer.testing import CliRunner

from builder.__main__ import app
from builder.handover import edges_of
from builder.handover.sizes import sizes_of
from builder.handover.verify import compare, read_placement
from builder.loading import load_pipelines
from builder.plan import make_plan

pytestmark = pytest.mark.server


@pytest.fixture
def verbose(served) -> Iterator[None]:
    """The server's log says everything meanwhile."""

    def set_level(level: int) -> None:
        body = json.dumps({"log_verbose_level": level}).encode()
        urllib.request.urlopen(urllib.request.Request(f"http://{served.http}/v2/logging", body, method="POST")).close()

    set_level(1)
    yield
    set_level(0)


def _tensor(name: str, array: np.ndarray, kind: str) -> grpcclient.InferInput:
    made = grpcclient.InferInput(name, list(array.shape), kind)
    made.set_data_from_numpy(array)
    return made


def _ask(address: str, model: str, inputs: Sequence[grpcclient.InferInput]) -> None:
    with grpcclient.InferenceServerClient(address) as client:
        client.infer(model, inputs)


def test_every_edge_lies_where_it_was_predicted(served, verbose, checkout):
    before = served.log_file.stat().st_size
    picture = np.frombuffer((checkout / "samples" / "coffee.jpg").read_bytes(), np.uint8)
    samples, _ = soundfile.read(checkout / "samples" / "sense_and_sensibility.flac", dtype="float32")
    _ask(served.grpc, "detect", [_tensor("IMAGE", picture, "UINT8")])
    _ask(served.grpc, "transcribe", [_tensor("AUDIO", samples, "FP32")])
    with served.log_file.open(encoding="utf-8", errors="replace") as log:
        log.seek(before)
        placement = read_placement(log.read())
    plan = make_plan(load_pipelines(["detect", "transcribe"], {}))
    catalog = plan.catalog("cpu")
    for name, outputs in (("detect", 8), ("transcribe", 7)):
        found = compare(edges_of(catalog.entries[name], catalog, sizes_of(plan.models), embedded=True), placement)
        assert [(one.key, one.verdict, one.remark) for one in found if one.verdict != "as predicted"] == []
        assert len(found) == outputs
    pixels = next(one for one in placement.seen if one.name == "IMAGES")
    assert (pixels.bytes, pixels.place) == (3 * 416 * 416, -1)


def test_a_wrong_prediction_is_found(served, verbose, checkout):
    picture = np.frombuffer((checkout / "samples" / "coffee.jpg").read_bytes(), np.uint8)
    _ask(served.grpc, "detect", [_tensor("IMAGE", picture, "UINT8")])
    plan = make_plan(load_pipelines(["detect"], {}))
    catalog = plan.catalog("gpu")
    found = compare(
        edges_of(catalog.entries["detect"], catalog, sizes_of(plan.models)),
        read_placement(served.log_file.read_text(encoding="utf-8", errors="replace")),
    )
    assert {one.tensor: one.verdict for one in found if one.is_wrong} == {
        "pixels": "elsewhere",
        "predictions": "elsewhere",
    }


def test_a_running_server_is_held_against_the_plan_by_its_url(served):
    url = f"http://{served.http}"
    good = CliRunner().invoke(app, ["plan", "detect", "--profile", "cpu", "--verify", url])
    assert good.exit_code == 0, good.output
    assert "Beside the server: Triton 2.51.0" in good.stdout
    assert "every model is ready, with what was planned for it" in good.stdout
    assert "no endpoint tells: start the server with --log-verbose=1" in good.stdout
    other = CliRunner().invoke(app, ["plan", "detect", "--gpu", "L4", "--verify", url])
    assert other.exit_code == 1
    assert "yolo: instance_group is 1 x KIND_CPU, planned 1 x KIND_GPU on 0" in other.stderr
    assert "yolo_postprocess: FORCE_CPU_ONLY_INPUT_TENSORS is yes, planned no" in other.stderr
    assert "yolo_preprocess: device_outputs is none, planned IMAGES" in other.stderr
