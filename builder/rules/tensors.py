"""Rules about the inputs and outputs that a model declares (core: ValidateIOShape)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.tensors import dims_text

_WHY = "core: model_config_utils.cc, ValidateIOShape"


@rule("TK201", "error", "tensor without a name", why=_WHY)
def nameless(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Every input and output needs its name."""
    for side, index, declared in _declared(entry):
        if not declared.get("name"):
            yield Problem(
                path=(side, index),
                found=f"{side} {index} has no name",
                expected="the name by which the model knows the tensor is needed",
                fix="Write its name",
            )


@rule("TK202", "error", "tensor without a data type", why=_WHY)
def typeless(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Every input and output needs its data type."""
    for side, index, declared in _declared(entry):
        if declared.get("data_type", "TYPE_INVALID") == "TYPE_INVALID" and not entry.inferred:
            yield Problem(
                tensor=declared.get("name"),
                side=side,
                path=(side, index, "data_type"),
                found="no data type is given",
                expected="one such as TYPE_FP32 is needed",
                fix="Write data_type",
            )


@rule("TK203", "error", "dims missing or not sizes", why=_WHY)
def bad_dims(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Dims must be there, and each 1 or more, or -1."""
    for side, index, declared in _declared(entry):
        dims = declared.get("dims", ())
        if entry.inferred:
            continue
        if not dims or any(size < 1 and size != -1 for size in dims):
            yield Problem(
                tensor=declared.get("name"),
                side=side,
                path=(side, index, "dims"),
                found=f"dims are {dims_text(dims)}" if dims else "no dims are given",
                expected="sizes of 1 or more are needed, -1 where one varies",
                fix="Write dims: [1] for a single value"
                + (", and reshape { shape: [] } if the model wants no dimension" if not dims else ""),
            )


@rule(
    "TK204",
    "error",
    "two tensors of one name",
    why="The server loads it; no request can ever satisfy it (DEP-06)",
    server="accepts",
)
def duplicates(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A name given twice among the inputs, or among the outputs."""
    for side in ("input", "output"):
        counts = Counter(one.get("name", "") for one in entry.config.get(side, ()))
        for name, count in counts.items():
            if count > 1 and name:
                yield Problem(
                    tensor=name,
                    side=side,
                    path=(side,),
                    found=f"{name} is declared {count} times",
                    expected="each name can be declared once",
                    fix="Keep one of them",
                )


@rule("TK205", "error", "reshape to another number of elements", why=_WHY)
def bad_reshape(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A reshape keeps the number of elements; an empty one needs a batch dimension."""
    for side, index, declared in _declared(entry):
        if "reshape" not in declared or not declared.get("dims"):
            continue
        dims, shape = declared["dims"], declared["reshape"].get("shape", ())
        if not shape and not entry.is_batching:
            yield Problem(
                tensor=declared.get("name"),
                side=side,
                path=(side, index, "reshape"),
                found="reshape is to no dimension at all, and the model does not batch",
                expected="an empty reshape needs max_batch_size above 0",
                fix="Take the reshape out, or let the model batch",
            )
        elif any(size < 1 and size != -1 for size in shape) or not _same_elements(dims, shape):
            yield Problem(
                tensor=declared.get("name"),
                side=side,
                path=(side, index, "reshape"),
                found=f"dims {dims_text(dims)} are reshaped to {dims_text(shape)}",
                expected="the same number of elements is needed, between each two sizes that vary too",
                fix="Correct dims or reshape",
            )


@rule("TK206", "error", "format without three dims", why=_WHY)
def format_dims(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """FORMAT_NHWC and FORMAT_NCHW are for pictures: three dims."""
    for side, index, declared in _declared(entry):
        picture = declared.get("format") in ("FORMAT_NHWC", "FORMAT_NCHW")
        if picture and declared.get("dims") and len(declared["dims"]) != 3:
            yield Problem(
                tensor=declared.get("name"),
                side=side,
                path=(side, index, "format"),
                found=f"{declared['format']} with dims {dims_text(declared['dims'])}",
                expected="three dims are needed for a format of pictures",
                fix="Take the format out",
            )


@rule("TK207", "error", "shape tensor outside TensorRT", why=_WHY)
def only_tensorrt(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Shape tensors and non-linear formats exist for TensorRT only."""
    if entry.config.get("platform") == "tensorrt_plan" or entry.config.get("backend") == "tensorrt":
        return
    for side, index, declared in _declared(entry):
        for field in ("is_shape_tensor", "is_non_linear_format_io"):
            if declared.get(field):
                yield Problem(
                    tensor=declared.get("name"),
                    side=side,
                    path=(side, index, field),
                    found=f"{field} on a model that TensorRT does not run",
                    expected="it is known to TensorRT models only",
                    fix="Take it out",
                )


@rule("TK208", "error", "negative max_batch_size", why="core: 'max_batch_size' must be non-negative value")
def negative_batch(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """0 says that the model does not batch; there is nothing below."""
    size = entry.config.get("max_batch_size", 0)
    if size < 0:
        yield Problem(
            path=("max_batch_size",),
            found=f"max_batch_size is {size}",
            expected="0 for a model that does not batch, or more, is needed",
            fix="Write 0 or the largest batch",
        )


def _declared(entry: Entry) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    for side in ("input", "output"):
        for index, declared in enumerate(entry.config.get(side, ())):
            yield side, index, declared


def _same_elements(dims: Sequence[int], shape: Sequence[int]) -> bool:
    """Piecewise around each -1, as the server counts."""
    return _pieces(dims) == _pieces(shape)


def _pieces(sizes: Sequence[int]) -> list[int]:
    pieces: list[list[int]] = [[]]
    for size in sizes:
        if size == -1:
            pieces.append([])
        else:
            pieces[-1].append(size)
    return [prod(piece) for piece in pieces]
