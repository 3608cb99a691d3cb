"""An ONNX graph written as function calls: a value's name goes in, a value's name comes out.

In: operator calls and arrays. Out: a checked file with pinned opset and IR version.
The graphs of Whisper are written this way, and not traced from torch, so that every operator and its memory traffic
is ours to choose, exporting takes about a second, and no torch is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
IR_VERSION = 8  # ONNX Runtime 1.19 of Triton 24.10 reads up to 10
ONE_FILE_BYTES = 1_500_000_000  # protobuf ends at 2 GiB

Shape = Sequence[int | str]


class OnnxGraph:
    """Nodes, constants, inputs and outputs, in the order in which they were asked for.

    Args:
        dtype: `numpy.float32` or `numpy.float16`: of the weights and of the work between inputs and outputs.
    """

    def __init__(self, name: str, dtype: np.dtype) -> None:
        self.dtype = dtype
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._fresh = 0

    @property
    def float_type(self) -> int:
        """The ONNX element type of `dtype`."""
        return helper.np_dtype_to_tensor_dtype(self.dtype)

    def input(self, name: str, element_type: int, shape: Shape) -> str:
        """A new input of the graph."""
        self._inputs.append(helper.make_tensor_value_info(name, element_type, list(shape)))
        return name

    def output(self, name: str, value: str, element_type: int, shape: Shape) -> None:
        """Makes a float value an output under the given name, in the given element type."""
        self._outputs.append(helper.make_tensor_value_info(name, element_type, list(shape)))
        if element_type == self.float_type:
            self._nodes.append(helper.make_node("Identity", [value], [name]))
        else:
            self._nodes.append(helper.make_node("Cast", [value], [name], to=element_type))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The one result of an operator."""
        return self.ops(kind, *inputs, results=1, **attributes)[0]

    def ops(self, kind: str, *inputs: str, results: int, **attributes: Any) -> list[str]:
        """All results of an operator."""
        names = [self._fresh_name(kind) for _ in range(results)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def weight(self, name: str, array: np.ndarray) -> str:
        """A constant in the graph's float type. The same name twice is the same constant."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(array, self.dtype), name)
        return name

    def integers(self, *values: int) -> str:
        """A constant int64 [n]."""
        name = "i_" + "_".join(str(v) for v in values)
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.array(values, np.int64), name)
        return name

    def integer(self, value: int) -> str:
        """A constant int64 scalar."""
        name = f"n_{value}"
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.array(value, np.int64), name)
        return name

    def size(self, value: str, axis: int) -> str:
        """The length of one axis: int64 scalar."""
        return self.op("Squeeze", self.op("Shape", value, start=axis, end=axis + 1))

    def write(self, path: Path) -> None:
        """Checks the graph and writes it: one file, or with its weights beside it (`<name>.data`) past 1.5 GB."""
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, initializer=list(self._constants.values())
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="tritonkit"
        )
        apart = sum(len(c.raw_data) for c in self._constants.values()) > ONE_FILE_BYTES
        onnx.save_model(
            model, str(path), save_as_external_data=apart, all_tensors_to_one_file=True, location=f"{path.name}.data"
        )
        onnx.checker.check_model(str(path))

    def _fresh_name(self, kind: str) -> str:
        self._fresh += 1
        return f"{kind.lower()}_{self._fresh}"


FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
