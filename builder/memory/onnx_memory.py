"""What an ONNX model takes while it runs: weights, and the largest sum of tensors that live at one time.

In: a file and the sizes of its axes that vary. Out: an `OnnxMemory`. The file is read without its weights outside.
Tensors live from the node that makes them to the last one that reads them; a node that works on one tensor element by
element writes over it if nobody reads it afterwards, and one that only renames sizes makes no tensor, as ONNX Runtime
plans it. Memory that is free again is kept for the next tensor of the same shape, if one comes. What depends on
constants alone is computed when the session starts: then the result stays, not what it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from builder.backends.onnx import load_graph
from builder.memory.onnx_shapes import Shape, known_bytes, named_shapes, tensor_bytes

_RENAMING = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"}
_IN_PLACE = {
    "Add", "Sub", "Mul", "Div", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Erf", "Sqrt", "Exp", "Neg", "Clip", "Abs",
    "Log", "Floor", "Ceil", "Reciprocal", "Elu", "Selu", "HardSigmoid", "HardSwish", "BatchNormalization", "Gelu",
    "Max", "Min",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxMemory:
    """Bytes that a model takes.

    Attributes:
        weights: its constants.
        activations: what its nodes make and still need, at the worst time.
        inputs, outputs: what one run gets and gives.
        assumed: axes that vary and that nobody named: taken as 1.
        unknown: how many tensors had sizes that could not be worked out, and count nothing.
    """

    weights: int
    activations: int
    inputs: int
    outputs: int
    assumed: tuple[str, ...] = ()
    unknown: int = 0


def onnx_memory(path: Path, sizes: Mapping[str, int] | None = None, *, batch: int = 1) -> OnnxMemory:
    """The memory of a model.

    Args:
        sizes: by an axis' name in the file, its size; further names are allowed.
        batch: size of a first axis that varies and is not in `sizes`.

    Raises:
        DeclarationError: there is no such file, or it is no ONNX model.
    """
    model = load_graph(path.name, path)
    graph = model.graph
    shapes = named_shapes(model)
    weights = {one.name: tensor_bytes(one.dims, one.data_type) for one in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    assumed = [name for value in inputs for name in _fix(value, sizes or {}, batch)]
    nodes, given, made = list(graph.node), [one.name for one in inputs], [one.name for one in graph.output]
    known = known_bytes(model, weights)
    left, kept = _after_folding(nodes, weights, known, made)
    peak, unknown = _peak(left, known, shapes, made)
    return OnnxMemory(
        weights=kept,
        activations=peak,
        inputs=sum(known.get(name, 0) for name in given),
        outputs=sum(known.get(name, 0) for name in made),
        assumed=tuple(dict.fromkeys(assumed)),
        unknown=unknown,
    )


def _fix(value: Any, sizes: Mapping[str, int], batch: int) -> Iterator[str]:
    """Give every axis of an input its size; yields the names of those that nobody named."""
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if dim.dim_value > 0:
            continue
        name = dim.dim_param
        size = sizes.get(name, batch if axis == 0 else None)
        if size is None:
            yield name or f"{value.name}, axis {axis}"
        dim.dim_value = size or 1


def _after_folding(
    nodes: Sequence[Any], weights: Mapping[str, int], known: Mapping[str, int], outputs: Sequence[str]
) -> tuple[list[Any], int]:
    """The nodes that run each time, and bytes of the constants that they and the outputs read."""
    constant = dict(weights)
    left = []
    for node in nodes:
        read = [name for name in _read(node) if name]
        if all(name in constant for name in read) and node.op_type != "Constant" or node.op_type == "Constant":
            constant |= {name: known.get(name, 0) for name in node.output}
        else:
            left.append(node)
    wanted = {name for node in left for name in _read(node)} | set(outputs)
    return left, sum(size for name, size in constant.items() if name in wanted)


def _peak(
    nodes: Sequence[Any], known: Mapping[str, int], shapes: Mapping[str, Shape], outputs: Sequence[str]
) -> tuple[int, int]:
    """The largest sum of tensors alive at one time, and the number of tensors of unknown size."""
    last = {name: index for index, node in enumerate(nodes) for name in _read(node)}
    last |= dict.fromkeys(outputs, len(nodes))
    turned = _turned_by_the_product(nodes, outputs)
    makers = {name: node for node in nodes for name in node.output}
    home: dict[str, str] = {}  # by tensor, the one whose memory it lies in
    users: dict[str, int] = {}  # by that one, the last node that reads any tensor in it
    held: dict[str, int] = {}
    spans: dict[str, list[int]] = {}  # by that one, the nodes from which on and up to which the memory is kept
    free: list[str] = []
    for index, node in enumerate(nodes):
        for position, name in enumerate(one for one in node.output if one):
            size = 0 if name in turned else known.get(name, 0)
            base = _reused(node, size, index, home, users, held, shapes, makers) if position == 0 else None
            if base is None and name not in outputs and shapes.get(name):
                base = next((one for one in reversed(free) if shapes.get(one) == shapes[name]), None)
                if base is not None:
                    free.remove(base)
            home[name] = base or name
            users[home[name]] = max(users.get(home[name], index), last.get(name, index))
            held.setdefault(home[name], size)
            spans.setdefault(home[name], [index, index])[1] = users[home[name]]
        for name in [one for one in held if users[one] == index and one not in free]:
            free.append(name)
    alive = [0] * (len(nodes) + 1)
    for name, (start, stop) in spans.items():
        for index in range(start, min(stop, len(nodes) - 1) + 1):
            alive[index] += held[name]
    return max(alive), sum(name not in known for node in nodes for name in node.output if name)


def _turned_by_the_product(nodes: Sequence[Any], outputs: Sequence[str]) -> set[str]:
    """Outputs of a `Transpose` that only matrix products read, which turn the last two axes themselves."""
    readers: dict[str, list[str]] = {}
    for node in nodes:
        for name in _read(node):
            readers.setdefault(name, []).append(node.op_type)
    return {
        node.output[0]
        for node in nodes
        if node.op_type == "Transpose"
        and node.output[0] not in outputs
        and set(readers.get(node.output[0], ())) == {"MatMul"}
        and _swaps_the_last_two(list(next((one.ints for one in node.attribute if one.name == "perm"), ())))
    }


def _swaps_the_last_two(order: Sequence[int]) -> bool:
    size = len(order)
    return size >= 2 and list(order) == [*range(size - 2), size - 1, size - 2]


def _reused(
    node: Any,
    size: int,
    index: int,
    home: Mapping[str, str],
    users: Mapping[str, int],
    held: Mapping[str, int],
    shapes: Mapping[str, Shape],
    makers: Mapping[str, Any],
) -> str | None:
    """The tensor whose memory the node's output takes over; None for memory of its own."""
    read = [name for name in node.input if name]
    if node.op_type in _RENAMING:
        base = home.get(read[0])
        return base if base in held else None
    if node.op_type in _IN_PLACE and _is_in_place(node, read, shapes, makers):
        for base in (home.get(name) for name in read):
            if base is not None and base in held and held[base] == size and users[base] <= index:
                return base
    return None


def _is_in_place(node: Any, read: Sequence[str], shapes: Mapping[str, Shape], makers: Mapping[str, Any]) -> bool:
    """Whether a node that works element by element may write over an input: it has one that is more than a number.

    Two nodes of the graph are one for ONNX Runtime: a product and the bias behind it, where all sizes are numbers, and
    the parts of a Gelu.
    """
    wide = [
        name for name in read if prod(one if isinstance(one, int) else 2 for one in shapes.get(name, (0, 2))[1:]) != 1
    ]
    if len(wide) < 2:
        return True
    made_by = [makers[name].op_type if name in makers else "" for name in wide]
    if node.op_type == "Mul" and "Add" in made_by:
        before = makers[wide[made_by.index("Add")]].input
        return any(name in makers and makers[name].op_type == "Erf" for name in before)
    is_fixed = all(isinstance(one, int) for one in shapes.get(node.output[0], ("",)))
    return is_fixed and node.op_type == "Add" and "MatMul" in made_by and any(len(shapes[name]) == 2 for name in wide)


def _read(node: Any) -> Iterator[str]:
    """What a node reads, the graphs inside it included."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                yield from _read(inner)
