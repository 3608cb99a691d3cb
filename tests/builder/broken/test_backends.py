"""The smallest models that the server has no backend, agent or environment for, and what is said about each."""

from __future__ import annotations

import io
import tarfile

import pytest

CONFIG = """backend: "python"
input [ { name: "A" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
CODE = "class TritonPythonModel:\n    def execute(self, requests):\n        return [one for one in requests]\n"


@pytest.fixture
def told_of_text(told_of_folder):
    """What is said of a good Python model whose config goes on with `more`."""

    def ask(more: str, config: str = CONFIG, release: str = "embedded", **files: str | bytes) -> list[str]:
        return told_of_folder({"m/config.pbtxt": config + more, "m/1/model.py": CODE, **files}, release=release)

    return ask


@pytest.mark.parametrize(
    ("release", "found", "fix"),
    [
        ("embedded", "the embedded server has no backend vllm", "Serve it with the image 24.10-vllm-python-py3"),
        ("26.07-py3", "the image 26.07-py3 has no backend vllm", "Serve it with the image 26.07-vllm-python-py3"),
    ],
)
def test_a_backend_that_the_server_does_not_have(release, found, fix, told_of_folder):
    files = {"m/config.pbtxt": 'backend: "vllm"\n', "m/1/model.json": "{}"}
    (line,) = told_of_folder(files, release=release)
    assert line.startswith(f"TK121 m/config.pbtxt:1 m, backend: {found}, ") and line.endswith(f"{fix}.")


@pytest.mark.parametrize(
    "release", ["26.07-vllm", "26.07-vllm+py3", "nvcr.io/nvidia/tritonserver:26.07-vllm-python-py3"]
)
def test_a_backend_that_the_image_has(release, told_of_folder):
    assert told_of_folder({"m/config.pbtxt": 'backend: "vllm"\n', "m/1/model.json": "{}"}, release=release) == []


def test_a_backend_of_ones_own(told_of_folder):
    files = {"m/config.pbtxt": 'backend: "mine"\n' + CONFIG.partition("\n")[2], "m/1/libtriton_mine.so": ""}
    assert told_of_folder(files) == []


def test_a_runtime_that_is_not_there(told_of_text):
    (line,) = told_of_text('runtime: "libother.so"')
    assert line.startswith("TK122 m/config.pbtxt:4 m, runtime: runtime 'libother.so', libtriton_python.so")
    assert told_of_text('runtime: "libtriton_python.so"') == []


def test_an_agent_that_the_server_does_not_have(told_of_text):
    text = 'model_repository_agents { agents [ { name: "checksum" } ] }'
    (line,) = told_of_text(text)
    assert line.startswith(
        "TK123 m/config.pbtxt:4 m, model_repository_agents.agents[0].name: the embedded server has no "
    )
    assert told_of_text(text, release="24.10-py3") == []


def test_agents_without_any(told_of_text):
    """A real 2.51 ends without a word; found by the fuzzer (seed 11)."""
    (line,) = told_of_text("model_repository_agents { }")
    assert line.startswith("TK125 m/config.pbtxt:4 m, model_repository_agents: model_repository_agents without agents")


@pytest.mark.parametrize(("key", "fix"), [("a-b", "a_b"), ("__a", "a"), ("1st", "st")])
def test_a_metric_tag_that_is_no_label(key, fix, told_of_text):
    """A real 2.51 ends with `Invalid label name`."""
    (line,) = told_of_text(f'metric_tags {{ key: "{key}" value: "b" }}')
    assert line.startswith(f"TK124 m/config.pbtxt:4 m, metric_tags.{key}: the key '{key}', ")
    assert line.endswith(f"Write {fix}.")


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


def test_force_cpu_that_is_neither_yes_nor_no(told_of_text):
    """PYB-01 b."""
    (line,) = told_of_text(_parameter("FORCE_CPU_ONLY_INPUT_TENSORS", "false"))
    assert line.startswith("TK131 m/config.pbtxt:4 m, parameters.FORCE_CPU_ONLY_INPUT_TENSORS: ")
    assert line.endswith('Write string_value: "no".')


def test_a_parameter_in_another_case(told_of_text):
    """PYB-01 c."""
    (line,) = told_of_text(_parameter("force_cpu_only_input_tensors", "no"))
    assert line.startswith("TK132 m/config.pbtxt:4 m, parameters.force_cpu_only_input_tensors: ")
    assert line.endswith("Write FORCE_CPU_ONLY_INPUT_TENSORS.")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("/home/someone/envs/env.tar.gz", "EXECUTION_ENV_PATH is an absolute path of some machine, /home/someone"),
        ("env.tar.gz", "EXECUTION_ENV_PATH is a relative path, env.tar.gz"),
        ("$$TRITON_MODEL_DIRECTORY/env.tar.gz", "there is no env.tar.gz in the model's folder"),
    ],
)
def test_an_environment_that_does_not_travel(value, found, told_of_text):
    """PYB-05."""
    (line,) = told_of_text(_parameter("EXECUTION_ENV_PATH", value))
    assert line.startswith(f"TK133 m/config.pbtxt:4 m, parameters.EXECUTION_ENV_PATH: {found}")


def _packed(python: str, head: bytes = b"\x7fELF" + bytes(14) + b"\x3e\x00", package: str = "numpy") -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in (("bin/python", head), (f"lib/python{python}/site-packages/{package}/__init__.py", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


ENVIRONMENT = _parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY/env.tar.gz")


def test_a_packed_environment_of_another_python(told_of_text):
    """PYB-06."""
    files = {"m/env.tar.gz": _packed("3.11")}
    (line,) = told_of_text(ENVIRONMENT, release="24.10-py3", **files)
    assert line.startswith("TK134 m/config.pbtxt:4 m, parameters.EXECUTION_ENV_PATH: ")
    assert "holds Python 3.11, the stub of the image 24.10-py3 is built for Python 3.10" in line
    assert told_of_text(ENVIRONMENT, release="24.10-py3", **{"m/env.tar.gz": _packed("3.10")}) == []


def test_an_environment_packed_on_another_machine(told_of_text):
    """PYB-06."""
    (line,) = told_of_text(ENVIRONMENT, **{"m/env.tar.gz": _packed("3.11", b"\xcf\xfa\xed\xfe" + bytes(16))})
    assert "was packed for macOS, programs for Linux" in line


def test_an_environment_without_a_package_that_the_code_imports(told_of_folder):
    """PYB-06."""
    files = {
        "m/config.pbtxt": CONFIG + ENVIRONMENT,
        "m/1/model.py": f"import pandas\n{CODE}",
        "m/env.tar.gz": _packed("3.11"),
    }
    (line,) = told_of_folder(files)
    assert line.startswith("TK134 m/1/model.py:1 m: model.py imports pandas, which ")


def test_numpy_2_on_a_stub_that_cannot_take_it(told_of_text):
    packed = _packed("3.10", package="numpy-2.1.0.dist-info")
    (line,) = told_of_text(ENVIRONMENT, release="24.10-py3", **{"m/env.tar.gz": packed})
    assert "env.tar.gz holds numpy-2.1.0, numpy below 2 is needed" in line
    newer = _packed("3.12", package="numpy-2.1.0.dist-info")
    assert told_of_text(ENVIRONMENT, release="24.12-py3", **{"m/env.tar.gz": newer}) == []


def test_a_memory_limit_that_is_undone(told_of_folder):
    text = (
        'backend: "onnxruntime"\noptimization { execution_accelerators { gpu_execution_accelerator [ { name: "cuda" '
        'parameters { key: "gpu_mem_limit" value: "1000" } } ] } }\n' + _parameter("intra_op_thread_count", "1")
    )
    lines = told_of_folder({"m/config.pbtxt": text, "m/1/.keep": ""})
    assert any(line.startswith("TK135 m/config.pbtxt:2 m, optimization.execution_accelerators.") for line in lines)


def test_an_accelerator_that_the_onnx_backend_of_a_stock_image_has_not(told_of_configs):
    accelerators = {"gpu_execution_accelerator": [{"name": "cuda"}, {"name": "tensorrt"}]}
    config = {
        "name": "m",
        "backend": "onnxruntime",
        "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [3]}],
        "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [3]}],
        "optimization": {"execution_accelerators": accelerators},
    }
    (line,) = told_of_configs(config, profile="gpu", release="26.07-stock-vllm")
    assert line.startswith("TK126 m, optimization.execution_accelerators.gpu_execution_accelerator")
    assert "accelerator 'tensorrt'" in line
    assert told_of_configs(config, profile="gpu", release="26.07") == []
