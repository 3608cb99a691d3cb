"""Environments of a model's own: their names, what is in them, and two of them in one ensemble on the server."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

from builder import Pipeline, Step, check_pipelines, python, target
from builder.environments import make_environment, make_environments
from builder.errors import RepositoryError
from builder.repository import write_repository
from builder.requirements import all_requirements, environment_path
from embedded import EmbeddedServer

VERSIONS = ("v1_25_2", "v1_26_4")
SERVED = """
import json
import sys

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        told = json.dumps([numpy.__version__, "onnx" in sys.modules or _has("onnx")])
        answer = pb_utils.Tensor("Y", numpy.array([told.encode()], object))
        return [pb_utils.InferenceResponse([answer]) for _ in requests]


def _has(name):
    import importlib.util

    return importlib.util.find_spec(name) is not None
"""


def _model(folder: Path, name: str, requirements: list[str]):
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code" / "model.py").write_text(SERVED)
    return python(name, code=folder / "code", input=["X FP32 [1]"], output=["Y STRING [1]"], requirements=requirements)


def _wheel(folder: Path, version: str) -> Path:
    """A package of one module, without an index to ask."""
    path = folder / f"tiny_thing-{version}-py3-none-any.whl"
    info = f"tiny_thing-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny_thing.py", f'VERSION = "{version}"\n')
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-thing\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def test_a_server_with_another_python_is_refused_before_anything_is_installed(tmp_path):
    (tmp_path / "model.py").write_text(SERVED)
    tensors = {"input": ["X FP32 [1]"], "output": ["Y STRING [1]"]}
    model = python("scorer", code=tmp_path, requirements=["onnxruntime==1.20.1"], **tensors)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(
        RepositoryError, match=f"scorer: its environment would be made for this machine's Python {here}"
    ):
        make_environments([model], tmp_path, target=target("26.07"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.py"]


def test_equal_requirements_are_one_environment_whatever_their_order():
    assert environment_path(["a==1", "b  >2"]) == environment_path(["b >2", "a==1", "a==1"])
    assert environment_path(["a==1"]) != environment_path(["a==2"])


def test_numpy_that_the_stub_can_use_is_always_there():
    assert all_requirements(["a"]) == ("a", "numpy<2")
    assert all_requirements(["NumPy==1.25.2"]) == ("NumPy==1.25.2",)
    assert all_requirements(["numpy_financial"]) == ("numpy_financial", "numpy<2")


def test_a_model_with_requirements_names_its_environment_and_others_have_none(tmp_path):
    own, plain = _model(tmp_path, "own", ["numpy==1.25.2"]), _model(tmp_path, "plain", [])
    assert own.config["parameters"]["EXECUTION_ENV_PATH"]["string_value"] == (
        "$$TRITON_MODEL_DIRECTORY/1/environment.tar.gz"
    )
    assert [one.source for one in own.artifacts] == [environment_path(["numpy==1.25.2"])]
    assert "parameters" not in plain.config and plain.artifacts == ()


def test_an_environment_works_wherever_it_is_unpacked_and_holds_nothing_else(tmp_path):
    target = tmp_path / "kept" / "e.tar.gz"
    make_environment([str(_wheel(tmp_path, "1.5"))], target, "m")
    assert [one.name for one in target.parent.iterdir()] == ["e.tar.gz"]
    with tarfile.open(target) as archive:
        assert {one.uname for one in archive.getmembers()} == {""}
        archive.extractall(tmp_path / "else where", filter="fully_trusted")
    told = "import sys, tiny_thing, importlib.util as u; print(tiny_thing.VERSION, u.find_spec('typer'), sys.prefix)"
    line = f'. "{tmp_path}/else where/bin/activate" && python3 -c "{told}"'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == f"1.5 None {tmp_path}/else where\n", done.stderr


def test_what_is_there_is_not_made_again(tmp_path):
    model = _model(tmp_path, "m", ["no-such-package-anywhere==9"])
    kept = tmp_path / environment_path(model.requirements)
    kept.parent.mkdir()
    kept.write_bytes(b"made before")
    lines: list[str] = []
    make_environments([model], tmp_path, lines.append)
    assert (kept.read_bytes(), lines) == (b"made before", [])


def test_requirements_that_cannot_be_installed_are_told_and_leave_nothing(tmp_path):
    with pytest.raises(
        RepositoryError, match=r"m: not a requirement!! cannot be installed \(ERROR: Invalid requirement"
    ):
        make_environment(["not a requirement!!"], tmp_path / "kept" / "e.tar.gz", "m")
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.server
def test_two_models_with_different_numpy_work_in_one_ensemble(tmp_path, checkout):
    """The packages come from the index once, and stay in the cache."""
    models = [_model(tmp_path, name, [f"numpy=={name.replace('v', '').replace('_', '.')}"]) for name in VERSIONS]
    steps = [Step(model=one, input_map="X", output_map=f"Y={one.name.upper()}") for one in models]
    pipeline = Pipeline(name="versions", inputs="X", outputs=[one.name.upper() for one in models], steps=steps)
    plan, findings = check_pipelines([pipeline])
    assert [one.code for one in findings] == ["TK316"]  # they refuse nothing
    exports = checkout / ".cache" / "exports"
    make_environments(plan.models, exports)
    write_repository(plan, tmp_path / "repository", exports=exports, weights=True, only=True, force=False)
    with (
        EmbeddedServer(tmp_path / "repository", cache=checkout / ".cache", cpu_threads=1) as server,
        grpcclient.InferenceServerClient(server.grpc) as client,
    ):
        tensor = grpcclient.InferInput("X", [1], "FP32")
        tensor.set_data_from_numpy(np.ones(1, np.float32))
        answer = client.infer("versions", [tensor])
        told = [json.loads(answer.as_numpy(name.upper())[0]) for name in VERSIONS]
    assert told == [["1.25.2", False], ["1.26.4", False]]
