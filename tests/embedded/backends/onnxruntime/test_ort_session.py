"""What computes: the CPU, or a GPU with the options that the configuration gives it."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path

import onnx
import pytest


@pytest.fixture
def session(checkout, monkeypatch):
    folder = checkout / "embedded" / "backends" / "onnxruntime"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("ort_session_tested", folder / "ort_session.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("ort_session_tested", None)


def test_without_a_gpu_the_cpu_computes(session):
    assert session.providers({}, None) == ["CPUExecutionProvider"]


def test_a_gpu_gets_the_options_of_the_configuration_in_onnx_runtimes_words(session, monkeypatch):
    monkeypatch.setattr(session.ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    parameters = {"gpu_mem_limit": "123", "arena_extend_strategy": "1", "cudnn_conv_algo_search": "2"}
    accelerators = {"gpu_execution_accelerator": [{"name": "cuda", "parameters": parameters}]}
    config = {"optimization": {"execution_accelerators": accelerators}}
    assert session.providers(config, 1) == [
        (
            "CUDAExecutionProvider",
            {
                "device_id": "1",
                "gpu_mem_limit": "123",
                "arena_extend_strategy": "kSameAsRequested",
                "cudnn_conv_algo_search": "DEFAULT",
            },
        ),
        "CPUExecutionProvider",
    ]


def test_a_gpu_instance_with_a_library_for_cpus_is_refused(session):
    if "CUDAExecutionProvider" in session.ort.get_available_providers():
        pytest.skip("this ONNX Runtime knows GPUs")
    with pytest.raises(ValueError, match="KIND_GPU: the installed onnxruntime is for CPUs"):
        session.open_session(Path("model.onnx"), {}, 0)


def test_a_gpu_that_onnx_runtime_passes_over_in_silence_is_refused(session, monkeypatch, tmp_path):
    """As with onnxruntime-gpu where a library of CUDA is missing: it logs a line, and computes on the host."""
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9),
        str(tmp_path / "model.onnx"),
    )
    monkeypatch.setattr(session.ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    with warnings.catch_warnings(), pytest.raises(ValueError, match="could not load its CUDAExecutionProvider"):
        warnings.simplefilter("ignore")  # one for CPUs warns besides
        session.open_session(tmp_path / "model.onnx", {}, 0)
