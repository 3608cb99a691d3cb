"""Models whose executions take a known or a smoothly growing time, for the model of Triton's batcher.

`gemm`: an ONNX file of dense layers on the CPU, in which a batch costs little more than one row.
`timed`: a Python model that waits as a GPU would let it wait, with no processor time of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import builder
from builder.repository import write_repository

HERE = Path(__file__).parent
WIDTH, LAYERS = 1024, 12
WINDOW = {"max_queue_delay_microseconds": 5000}


def write_models(out: Path, work: Path, models: Sequence[str] = ("gemm", "timed")) -> None:
    """Write a model repository with these models; `work` is for files that the repository links."""
    makers = {"gemm": gemm, "timed": timed}
    pipelines = [alone(makers[name](work)) for name in models]
    write_repository(builder.checked_plan(pipelines), out, exports=work, weights=True)


def alone(model: builder.Model) -> builder.Pipeline:
    """A pipeline of nothing but this model."""
    step = builder.Step(model=model, input_map="X", output_map="Y")
    return builder.Pipeline(name=f"{model.name}_alone", inputs="X", outputs="Y", steps=[step])


def gemm(work: Path) -> builder.Model:
    """The dense layers, on one thread."""
    work.mkdir(parents=True, exist_ok=True)
    file = work / "gemm.onnx"
    onnx.save(gemm_graph(), file)
    threads = {"intra_op_thread_count": "1"}
    return builder.onnx("gemm", file=file, max_batch_size=16, dynamic_batching=WINDOW, parameters=threads)


def timed(work: Path) -> builder.Model:
    """The model that waits 8 ms, and 1 ms for each row."""
    return builder.python(
        "timed",
        code=HERE / "timed",
        input=["X FP32 [4]"],
        output=["Y FP32 [4]"],
        max_batch_size=8,
        dynamic_batching=WINDOW,
        parameters={"base_us": "8000", "each_us": "1000"},
    )


def gemm_graph() -> onnx.ModelProto:
    """X float32 [n, WIDTH] -> Y of the same shape, through LAYERS dense layers of random weights."""
    random = np.random.default_rng(0)
    weights, nodes = [], []
    for layer in range(LAYERS):
        values = (random.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{layer}"))
        source = "X" if layer == 0 else f"h{layer - 1}"
        target = "Y" if layer == LAYERS - 1 else f"h{layer}"
        nodes += [
            helper.make_node("MatMul", [source, f"w{layer}"], [f"m{layer}"]),
            helper.make_node("Tanh", [f"m{layer}"], [target]),
        ]
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", WIDTH]) for name in "XY"]
    graph = helper.make_graph(nodes, "gemm", tensors[:1], tensors[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
