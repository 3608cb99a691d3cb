"""Backends: functions that return a `Model` with the needs of its backend filled in."""

from builder.backends.accelerators import cuda, tensorrt
from builder.backends.existing import existing
from builder.backends.onnx import onnx
from builder.backends.python import python
from builder.backends.tensorrt_plan import tensorrt_plan
from builder.backends.vllm import vllm

__all__ = ["cuda", "existing", "onnx", "python", "tensorrt", "tensorrt_plan", "vllm"]
