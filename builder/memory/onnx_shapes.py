"""Sizes of every tensor of an ONNX graph whose inputs have known sizes.

In: a parsed model and the bytes of its constants. Out: bytes by tensor. The library infers sizes node by node, but does
not compute with them: a `Range` up to a size is unknown to it. So small constants are computed here, and it is asked
again, until nothing new is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

LARGE_BYTES = 1 << 16
ROUNDS = 12
_BITS = {"FLOAT": 32, "DOUBLE": 64, "FLOAT16": 16, "BFLOAT16": 16, "INT64": 64, "UINT64": 64, "INT32": 32,
         "UINT32": 32, "INT16": 16, "UINT16": 16, "INT8": 8, "UINT8": 8, "BOOL": 8, "INT4": 4, "UINT4": 4}  # fmt: skip


def tensor_bytes(dims: Sequence[int], element: int) -> int:
    """Bytes of a tensor of ONNX's element type `element`."""
    import onnx

    return prod(dims) * _BITS.get(onnx.TensorProto.DataType.Name(element), 64) // 8


Shape = tuple[int | str, ...]


def named_shapes(model: Any) -> dict[str, Shape]:
    """Shapes of tensors as far as they can be said in numbers and in names of the inputs' axes, element type in front.

    Two tensors of one shape have one size whatever a request brings: that is all that ONNX Runtime knows beforehand.
    Names end for it at a `Reshape`, as memory that real sessions take shows.
    """
    import onnx

    named = {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim} - {""}
    told = onnx.ModelProto()
    told.CopyFrom(model)
    told.opset_import.append(onnx.helper.make_opsetid("nobody", 1))
    for node in told.graph.node if named else ():
        if node.op_type == "Reshape":
            node.domain = "nobody"
    graph = onnx.shape_inference.infer_shapes(told, data_prop=True).graph
    found: dict[str, Shape] = {one.name: (one.data_type, *one.dims) for one in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        dims = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim)
        if tensor.HasField("shape") and all(isinstance(dim, int) or dim in named for dim in dims):
            found[value.name] = (tensor.elem_type, *dims)
    return found


def known_bytes(model: Any, weights: Mapping[str, int]) -> dict[str, int]:
    """Bytes of every tensor whose sizes can be worked out. The model is changed: large constants lose their values."""
    import onnx

    _without_large_values(model, weights)
    known: dict[str, tuple[int, list[int]]] = {}
    for _ in range(ROUNDS):
        del model.graph.value_info[:]
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        found = dict(_sizes(inferred))
        if len(found) == len(known):
            break
        known = found
        _compute_small(model, known)
    return {name: tensor_bytes(dims, element) for name, (element, dims) in known.items()}


def _without_large_values(model: Any, weights: Mapping[str, int]) -> None:
    """Make large constants inputs, so that nothing is copied to infer sizes; forget sizes that were inferred before."""
    import onnx

    kept = [one for one in model.graph.initializer if weights[one.name] <= LARGE_BYTES and not one.external_data]
    names = {one.name for one in kept} | {value.name for value in model.graph.input}
    for one in model.graph.initializer:
        if one.name not in names:
            model.graph.input.append(onnx.helper.make_tensor_value_info(one.name, one.data_type, list(one.dims)))
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _sizes(graph: Any) -> Iterator[tuple[str, tuple[int, list[int]]]]:
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
        if tensor.HasField("shape") and -1 not in dims:
            yield value.name, (tensor.elem_type, dims)
    for one in graph.initializer:
        yield one.name, (one.data_type, list(one.dims))


def _compute_small(model: Any, known: Mapping[str, tuple[int, list[int]]]) -> None:
    """Turn nodes that give a small constant into that constant: sizes of tensors, and what is computed from them."""
    import numpy as np
    import onnx
    from onnx.reference import ReferenceEvaluator

    values = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    left = []
    for node in model.graph.node:
        read = [name for name in node.input if name]
        if node.op_type == "Shape" and read[0] in known:
            part = {attribute.name: attribute.i for attribute in node.attribute}
            dims = known[read[0]][1][part.get("start", 0) : part.get("end")]
            values[node.output[0]] = np.array(dims, np.int64)
        elif _is_small(node, read, values, known):
            single = onnx.helper.make_graph([node], "one", [], [onnx.ValueInfoProto(name=one) for one in node.output])
            single.input.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(read))
            made = ReferenceEvaluator(single, opsets={one.domain: one.version for one in model.opset_import}).run(
                None, {name: values[name] for name in read}
            )
            values |= {name: np.asarray(one) for name, one in zip(node.output, made, strict=True)}
        else:
            left.append(node)
            continue
    before = {one.name for one in model.graph.initializer}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(value, name) for name, value in values.items() if name not in before
    )
    del model.graph.node[:]
    model.graph.node.extend(left)


def _is_small(
    node: Any, read: Sequence[str], values: Mapping[str, Any], known: Mapping[str, tuple[int, list[int]]]
) -> bool:
    """Whether all it reads is known and what it gives is small; nodes with graphs inside are left alone."""
    if node.domain or any(attribute.HasField("g") for attribute in node.attribute):
        return False
    if any(name not in values for name in read) or node.op_type.startswith("Random"):
        return False
    given = sum(values[name].nbytes for name in read)
    made = sum(tensor_bytes(known[name][1], known[name][0]) for name in node.output if name in known)
    return given <= LARGE_BYTES and made <= LARGE_BYTES
