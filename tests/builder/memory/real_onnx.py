"""A program, not a test: what one ONNX session really takes of this process's memory.

In: path and JSON {input: shape}. Out: JSON {"weights": bytes, "activations": bytes}. Measured without what only the
CPU has: prepacked copies, other layouts, an arena that keeps what was freed.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnxruntime

M_MMAP_THRESHOLD = -3
DTYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(uint8)": np.uint8}


def of_process(key: str) -> int:
    """Bytes of VmRSS or VmHWM, what was freed handed back first."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def options() -> onnxruntime.SessionOptions:
    """One thread, no arena, no prepacking."""
    made = onnxruntime.SessionOptions()
    made.intra_op_num_threads = made.inter_op_num_threads = 1
    made.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    made.enable_cpu_mem_arena = made.enable_mem_pattern = False
    made.add_session_config_entry("session.disable_prepacking", "1")
    return made


def first_session() -> None:
    """Let the library allocate what it allocates once."""
    value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "ab"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["a"], ["b"])], "g", value[:1], value[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    onnxruntime.InferenceSession(model.SerializeToString(), options()).run(None, {"a": np.zeros(1, np.float32)})


def main() -> None:
    """Measure and print."""
    path, shapes = sys.argv[1], json.loads(sys.argv[2])
    # A fixed bound: glibc raises it by itself, and what is freed below it stays in the process as a hole.
    ctypes.CDLL("libc.so.6").mallopt(M_MMAP_THRESHOLD, 1 << 16)
    first_session()
    before = of_process("VmRSS")
    session = onnxruntime.InferenceSession(path, options(), providers=["CPUExecutionProvider"])
    weights = of_process("VmRSS") - before
    feeds = {one.name: np.zeros(shapes[one.name], DTYPES[one.type]) for one in session.get_inputs()}
    for array in feeds.values():
        array.fill(0)  # so that its pages are there before
    given = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
    loaded = of_process("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    outputs = session.run_with_ort_values(None, given)  # what it makes itself: no copies for numpy
    print(json.dumps({"weights": weights, "activations": of_process("VmHWM") - loaded, "outputs": len(outputs)}))


if __name__ == "__main__":
    main()
