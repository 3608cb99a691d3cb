"""Any YOLO detection network in ONNX to an export folder, the file as it is.

In: an ONNX file, perhaps class names. Out: `model.onnx` (a copy), `labels.txt`, `yolo.json`.
What the file takes is read from it; what it gives is seen by running it once on a black picture.
"""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from weights.errors import ExportError
from weights.yolo.description import YoloDescription, write_description
from weights.yolo.layouts import layout_of

DATA_TYPES = {onnx.TensorProto.FLOAT: "TYPE_FP32", onnx.TensorProto.FLOAT16: "TYPE_FP16"}
DTYPES: dict[str, type] = {"TYPE_FP32": np.float32, "TYPE_FP16": np.float16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What the network takes: its one picture input; None where a dimension is free."""

    name: str
    data_type: str
    batch: int | None
    height: int | None
    width: int | None


def export_onnx_file(
    source: Path, out: Path, labels: Sequence[str] | None = None, image_size: tuple[int, int] | None = None
) -> None:
    """Fill the empty folder `out` from an ONNX file.

    Args:
        source: The file; weights in files beside it are taken in.
        out: The empty folder.
        labels: Class names; without them those in the file's metadata, as Ultralytics writes them.
        image_size: Height and width, for a file whose own are free and that does not name them.

    Raises:
        ExportError: The file is no ONNX detection network that can be served.
    """
    model = load_graph(source)
    description, names = describe(source, model, labels, image_size, source=source.name)
    if any(tensor.external_data for tensor in model.graph.initializer):
        onnx.save_model(onnx.load(source), out / "model.onnx", save_as_external_data=False)
    else:
        shutil.copyfile(source, out / "model.onnx")
    write_description(out, description, names)


def load_graph(path: Path) -> onnx.ModelProto:
    """The file's graph; weights that lie beside it are not read."""
    try:
        return onnx.load(path, load_external_data=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise ExportError(f"{path}: it cannot be read as ONNX ({error}). Give an .onnx file.") from error
    except Exception as error:  # protobuf's own DecodeError, which has no public base
        raise ExportError(f"{path}: it is no ONNX file. Give an .onnx file, or export the checkpoint.") from error


def describe(
    path: Path,
    model: onnx.ModelProto,
    labels: Sequence[str] | None,
    image_size: tuple[int, int] | None,
    *,
    source: str,
) -> tuple[YoloDescription, list[str]]:
    """What `yolo.json` and `labels.txt` have to say about the file.

    Raises:
        ExportError: As for `export_onnx_file`.
    """
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    _check_task(path, metadata)
    entry = _input(path, model)
    height, width = _size(path, entry, metadata, image_size)
    names = list(labels) if labels is not None else _names(path, metadata)
    output, shape, data_type = _output(path, entry, (height, width))
    classes = None if names is None else len(names)
    arguments = _literal(metadata.get("args", ""))
    nms_inside = metadata.get("end2end") == "True" or (isinstance(arguments, dict) and arguments.get("nms") is True)
    try:
        layout, count = layout_of(shape, classes, (height, width), nms_inside=nms_inside)
    except ExportError as error:
        raise ExportError(f"{path.name}: {error}") from None
    description = YoloDescription(
        source=source,
        input=entry.name,
        output=output,
        data_type=entry.data_type,
        output_data_type=data_type,
        height=height,
        width=width,
        batch=entry.batch,
        output_shape=shape,
        layout=layout,
        classes=count,
    )
    return description, names if names is not None else [f"class{number}" for number in range(count)]


def _check_task(path: Path, metadata: dict[str, str]) -> None:
    task = metadata.get("task", "detect")
    if task != "detect":
        raise ExportError(f"{path.name}: a network for the task '{task}'. Only detection is served; export such a one.")


def _input(path: Path, model: onnx.ModelProto) -> Input:
    """The network's one input, checked: [batch, 3, height, width] of floats."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    shapes = {value.name: _dims(value) for value in inputs}
    if len(inputs) != 1 or len(shapes[inputs[0].name]) != 4 or shapes[inputs[0].name][1] not in (3, None):
        raise ExportError(
            f"{path.name}: inputs {shapes}. One input [batch, 3, height, width] is expected. "
            "Export the network with the picture as its only input, channels first."
        )
    kind = inputs[0].type.tensor_type.elem_type
    if kind not in DATA_TYPES:
        raise ExportError(
            f"{path.name}: input {inputs[0].name} is {onnx.TensorProto.DataType.Name(kind)}. "
            "FLOAT or FLOAT16 is expected. Export it with float inputs, RGB from 0 to 1."
        )
    batch, _, height, width = shapes[inputs[0].name]
    return Input(name=inputs[0].name, data_type=DATA_TYPES[kind], batch=batch, height=height, width=width)


def _dims(value: onnx.ValueInfoProto) -> list[int | None]:
    return [dim.dim_value if dim.dim_value > 0 else None for dim in value.type.tensor_type.shape.dim]


def _size(path: Path, entry: Input, metadata: dict[str, str], image_size: tuple[int, int] | None) -> tuple[int, int]:
    """Height and width of the input: what the file fixes, else what was given, else what its metadata says."""
    named = _literal(metadata.get("imgsz", ""))
    wanted = image_size or (tuple(named) if isinstance(named, list) and len(named) == 2 else (None, None))
    height, width = entry.height or wanted[0], entry.width or wanted[1]
    if not height or not width:
        raise ExportError(
            f"{path.name}: its input's height and width are free and it does not say for which it was made. "
            "Give the image size; 640 by 640 is usual."
        )
    if image_size and (height, width) != tuple(image_size):
        raise ExportError(
            f"{path.name}: its input is fixed to {height} x {width}, {image_size[0]} x {image_size[1]} was asked for. "
            "Leave the image size out, or export the network again for that size."
        )
    return height, width


def _names(path: Path, metadata: dict[str, str]) -> list[str] | None:
    """The class names in the metadata (`names`, a Python dict or list), in order of their number."""
    if "names" not in metadata:
        return None
    names = _literal(metadata["names"])
    if isinstance(names, dict) and sorted(names) == list(range(len(names))):
        names = [names[number] for number in range(len(names))]
    if not isinstance(names, list):
        raise ExportError(f"{path.name}: its class names cannot be read ({metadata['names'][:60]}). Give the names.")
    return [str(name) for name in names]


def _literal(text: str) -> object:
    """The Python value that is written there; None when it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def _output(path: Path, entry: Input, size: tuple[int, int]) -> tuple[str, tuple[int, ...], str]:
    """Name, shape per picture and data type of the one output that can hold detections, as a run shows it."""
    found = _run(path, entry, size, entry.batch or 1)
    fitting = {name: array for name, array in found.items() if array.ndim == 3}
    if len(fitting) != 1:
        shapes = {name: list(array.shape) for name, array in found.items()}
        raise ExportError(
            f"{path.name}: outputs {shapes}. Exactly one of three dimensions [batch, rows, columns] is expected. "
            "Export a detection network with one output (for TensorRT's EfficientNMS plug-in: without it)."
        )
    name, array = next(iter(fitting.items()))
    if entry.batch is None:
        _check_batches(path, entry, size, name)
    kinds: dict[np.dtype, str] = {np.dtype(dtype): data_type for data_type, dtype in DTYPES.items()}
    if array.dtype not in kinds:
        raise ExportError(f"{path.name}: output {name} is {array.dtype}. float32 or float16 is expected. Export it so.")
    return name, array.shape[1:], kinds[array.dtype]


def _check_batches(path: Path, entry: Input, size: tuple[int, int], name: str) -> None:
    """A file that calls its batch free must answer two pictures with two rows, and fill the second as it does alone.

    Some exports with NMS inside fill the first row alone.
    """
    pictures = np.random.default_rng(0).random((2, 3, *size), np.float32)
    together = _answers(path, entry, pictures)[name]
    if len(together) != 2:
        raise ExportError(
            f"{path.name}: its batch is free, but two pictures give {len(together)} answers. "
            "Export it with a dynamic batch, or with a fixed one."
        )
    if not together[1].any() and _answers(path, entry, pictures[1:])[name].any():
        raise ExportError(
            f"{path.name}: of two pictures only the first is answered, though the second is answered alone. "
            "Export it with NMS outside, or with a fixed batch of 1."
        )


def _run(path: Path, entry: Input, size: tuple[int, int], batch: int) -> dict[str, np.ndarray]:
    """All outputs for a batch of black pictures."""
    return _answers(path, entry, np.zeros((batch, 3, *size), np.float32))


def _answers(path: Path, entry: Input, pictures: np.ndarray) -> dict[str, np.ndarray]:
    """All outputs for a batch of pictures."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        arrays = session.run(None, {entry.name: pictures.astype(DTYPES[entry.data_type])})
    except Exception as error:  # the runtime's exceptions have no common base but Exception
        raise ExportError(
            f"{path.name}: it does not run on {len(pictures)} picture(s) of {pictures.shape[2]} x {pictures.shape[3]} "
            f"({error}). "
            "Export it again; a network with plug-ins of TensorRT cannot be served as ONNX."
        ) from error
    return {output.name: np.asarray(array) for output, array in zip(session.get_outputs(), arrays, strict=True)}
