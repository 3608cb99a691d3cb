"""How ONNX models compute on a GPU, as Triton's config says it."""

from __future__ import annotations

import pytest

from builder import DeclarationError, Model
from builder.backends.accelerators import cuda, tensorrt, with_accelerator
from builder.catalog import entry
from builder.render import render_model


def test_tensorrt_with_shapes_and_a_cache_is_what_the_backend_reads():
    shapes = {"images": ([1, 3, 64, 64], [4, 3, 64, 64], [8, 3, 64, 64]), "scale": ([1], [1], [2])}
    made = tensorrt(precision="FP16", workspace_bytes=1 << 20, cache="/cache/trt", shapes=shapes)
    (one,) = made["execution_accelerators"]["gpu_execution_accelerator"]
    assert one == {
        "name": "tensorrt",
        "parameters": {
            "precision_mode": "FP16",
            "max_workspace_size_bytes": "1048576",
            "trt_engine_cache_enable": "1",
            "trt_engine_cache_path": "/cache/trt",
            "trt_profile_min_shapes": "images:1x3x64x64,scale:1",
            "trt_profile_opt_shapes": "images:4x3x64x64,scale:1",
            "trt_profile_max_shapes": "images:8x3x64x64,scale:2",
        },
    }


def test_cuda_is_the_fallback_behind_tensorrt_and_keeps_what_it_was_given():
    both = with_accelerator(tensorrt(), "cuda", {"gpu_mem_limit": "1"})
    both = with_accelerator(both, "cuda", {"arena_extend_strategy": "1"})
    names = [(one["name"], one["parameters"]) for one in both["execution_accelerators"]["gpu_execution_accelerator"]]
    assert [name for name, _ in names] == ["tensorrt", "cuda"]
    assert names[1][1] == {"gpu_mem_limit": "1", "arena_extend_strategy": "1"}


def test_the_config_that_is_written_has_them():
    model = Model(
        name="m",
        config={"backend": "onnxruntime", "input": ["X FP32 [1]"], "output": ["Y FP32 [1]"]},
        profiles={"gpu": {"optimization": cuda(gpu_mem_limit=1 << 30)}},
    )
    config = model.config_for("gpu")
    assert entry("m", config).issues == ()
    (text,) = (text for path, text in render_model(model).items() if path.endswith("configs/gpu.pbtxt"))
    assert 'key: "gpu_mem_limit"' in text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"precision": "fp16"}, "precision 'fp16'; one of FP32, FP16, INT8 is needed"),
        ({"shapes": {"x": ([2], [1], [3])}}, r"shapes of x: \[2\], \[1\], \[3\]; smallest, usual and largest"),
        ({"shapes": {"x": ([1], [1, 1], [1])}}, "of one length"),
    ],
)
def test_what_the_backend_would_pass_over_in_silence_is_refused(options, told):
    with pytest.raises(DeclarationError, match=told):
        tensorrt(**options)
