"""TensorRT plans: the config, the command that builds them, and what is said where they cannot be built."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builder import DeclarationError, Model, Pipeline, Step, check_pipelines
from builder.__main__ import app
from builder.backends.onnx import onnx_model
from builder.backends.tensorrt_plan import tensorrt_plan, trtexec
from builder.contents import contents
from builder.models.yolo import yolo
from builder.render import render_model

MINE = """
from dataclasses import replace
from builder import Pipeline, tensorrt_plan
from builder.models.yolo import yolo
from builder.pipelines.detect import look

NETWORK = yolo()
PIPELINE = Pipeline(
    name="mine", inputs="IMAGE CONFIDENCE? IOU?", outputs="DETECTIONS",
    steps=look(replace(NETWORK, network=tensorrt_plan(NETWORK.network)), "DETECTIONS"),
)
"""


def test_a_gpu_runs_the_plan_and_a_cpu_the_onnx_file():
    model = tensorrt_plan(yolo().network)
    texts = render_model(model)
    assert 'backend: "onnxruntime"' in texts["yolo/config.pbtxt"]
    gpu = texts["yolo/configs/gpu.pbtxt"]
    assert 'backend: "tensorrt"' in gpu and "execution_accelerators" not in gpu and "gpus: [0]" in gpu
    targets = [one.target for one in model.artifacts]
    assert {"model.onnx", "model.plan", "plan.json"} <= set(targets)


def test_the_command_names_every_input_at_every_batch_and_no_precision():
    model = tensorrt_plan(yolo().network, workspace_mib=2048)
    command = trtexec(model.tensorrt, "/source/model.onnx", "/plans/yolo.plan")
    assert command[0].endswith("/trtexec")
    assert command[1:] == [
        "--onnx=/source/model.onnx",
        "--saveEngine=/plans/yolo.plan",
        "--stronglyTyped",
        "--skipInference",
        "--memPoolSize=workspace:2048",
        "--minShapes=images:1x3x416x416",
        "--optShapes=images:8x3x416x416",
        "--maxShapes=images:8x3x416x416",
    ]


def _network(dims: list[int], batch: int) -> Model:
    tensors = {"input": [f"X FP32 {dims}"], "output": ["Y FP32 [1]"]}
    return onnx_model("net", source=Path("net.onnx"), max_batch_size=batch, **tensors)


def test_an_input_whose_size_varies_needs_shapes():
    with pytest.raises(DeclarationError, match=r"net, input X: shapes \[\], dims \[-1\]"):
        tensorrt_plan(_network([-1], 8))
    with pytest.raises(DeclarationError, match="smallest, usual and largest shape"):
        tensorrt_plan(_network([-1], 8), shapes={"X": ([1, 5], [8, 2], [8, 9])})
    model = tensorrt_plan(_network([-1], 8), shapes={"X": ([1, 5], [8, 50], [8, 90])})
    assert "--optShapes=X:8x50" in trtexec(model.tensorrt, "a", "b")
    assert not any("Shapes" in one for one in trtexec(tensorrt_plan(_network([4], 0)).tensorrt, "a", "b"))


def test_a_model_without_an_onnx_file_is_refused():
    with pytest.raises(DeclarationError, match="it has no ONNX file"):
        tensorrt_plan(yolo().preprocess)


def test_a_plan_is_another_one_when_shapes_are_others():
    one, other = (tensorrt_plan(_network([4], batch)).tensorrt.target for batch in (4, 8))
    assert one != other and one.name.startswith("net-")


def test_a_pipeline_with_a_plan_passes_every_rule_and_links_what_is_built(tmp_path):
    model = tensorrt_plan(_network([4], 8))
    pipeline = Pipeline(name="p", inputs="X", outputs="Y", steps=[Step(model=model, input_map="X", output_map="Y")])
    plan, findings = check_pipelines([pipeline], "26.07")
    assert [one for one in findings if one.severity == "error"] == []
    (tmp_path / "net.onnx").write_bytes(b"x")
    without = contents(plan, {}, tmp_path / "out", tmp_path, weights=True)
    assert "net/1/model.plan" not in without and "net/1/model.onnx" in without
    for path in (model.tensorrt.target, model.tensorrt.target.with_suffix(".json")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("{}")
    assert {"net/1/model.plan", "net/1/plan.json"} <= set(contents(plan, {}, tmp_path / "out", tmp_path, weights=True))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITONKIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine.py").write_text(MINE)

    def invoke(*arguments: object):
        return CliRunner().invoke(app, ["engines", *(str(one) for one in arguments)])

    return invoke


def test_the_command_prints_how_plans_are_built_in_the_releases_own_image(run, tmp_path):
    done = run(tmp_path / "mine.py", "--print", "--target", "25.08")
    assert done.exit_code == 0, done.output
    words = shlex.split(done.stdout)
    assert words[:5] == ["docker", "run", "--rm", "--gpus", "device=0"]
    assert any(word.endswith("tritonserver:25.08-py3") for word in words)
    assert "--maxShapes=images:8x3x416x416" in words
    none = run("detect")
    assert (none.exit_code, "no model of these pipelines runs a TensorRT plan" in none.stdout) == (0, True)


def test_without_a_gpu_or_the_network_it_refuses_and_says_what_to_run_where(run, tmp_path):
    missing = run(tmp_path / "mine.py")
    assert (missing.exit_code, "run `tritonkit weights` first" in missing.stderr) == (1, True)
    network = tmp_path / "cache" / "exports" / "yolov3-tiny" / "model.onnx"
    network.parent.mkdir(parents=True)
    network.write_bytes(b"x")
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    done = run(tmp_path / "mine.py")
    assert done.exit_code == 1
    assert "There is no NVIDIA GPU on this machine. A plan is built on the kind of GPU that runs it" in done.stderr
    assert "docker run --rm --gpus device=0" in done.stderr and "--saveEngine=/plans/yolo-" in done.stderr
    assert json.dumps(sorted(path.name for path in network.parent.parent.iterdir())) == '["yolov3-tiny"]'
    for name in ("yolo.json", "labels.txt"):
        (network.parent / name).write_text("x")
    built = CliRunner().invoke(
        app, ["build", str(tmp_path / "mine.py"), "--out", str(tmp_path / "out"), "--target", "26.07"]
    )
    assert built.exit_code == 0, built.output
    assert "yolo: its TensorRT plan is not built yet: tritonkit engines, then build" in built.stderr
