"""Marks of tests that run on a GPU, and skip where this environment cannot use one."""

from __future__ import annotations

import onnxruntime
import pytest
import torch

TORCH = [] if torch.cuda.is_available() else ["torch's CUDA build with a GPU that it can use"]
ONNX_RUNTIME = [] if "CUDAExecutionProvider" in onnxruntime.get_available_providers() else ["onnxruntime-gpu"]
MISSING = [*TORCH, *ONNX_RUNTIME]  # of what the networks need


def marks(missing: list[str]) -> list[pytest.MarkDecorator]:
    """For a test that needs what is missing, if anything is."""
    reason = f"needs {' and '.join(missing)}: `make test-gpu` brings it to a GPU"
    return [pytest.mark.gpu, pytest.mark.skipif(bool(missing), reason=reason)]
