"""ONNX models, run by the backend named `onnxruntime`: NVIDIA's on a GPU image, ours on the embedded server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.datatypes import DATA_TYPES
from builder.errors import DeclarationError
from builder.model import Artifact, Model

_BATCH = 8
LONGEST_WAIT_US = 30_000_000


def onnx(
    name: str,
    *,
    file: str | Path,
    max_batch_size: int | None = None,
    profiles: Mapping[str, Mapping[str, Any]] | None = None,
    **config: Any,
) -> Model:
    """A model of an ONNX file; inputs, outputs, types and the batch axis are read from the file.

    Args:
        file: the ONNX file. Data beside it (`model.onnx.data`) is linked as well.
        max_batch_size: the largest batch; where nothing is said, 8 if the first axis of every tensor varies, else 0.
        profiles: what differs on a GPU: `{"gpu": {"optimization": tensorrt(precision="FP16")}}`.
        config: any other part of ModelConfig, by Triton's names; `input` and `output` replace what the file says.

    Raises:
        DeclarationError: there is no such file, or it is no ONNX model.
    """
    path = Path(file).absolute()
    inputs, outputs = read_tensors(name, path)
    can_batch = all(tensor["dims"][:1] == [-1] and len(tensor["dims"]) > 1 for tensor in (*inputs, *outputs))
    size = max_batch_size if max_batch_size is not None else _BATCH if can_batch else 0
    if size > 0:
        _check_batch(name, size, (*inputs, *outputs))
        inputs, outputs = ([{**tensor, "dims": tensor["dims"][1:]} for tensor in side] for side in (inputs, outputs))
    declared = {"input": inputs, "output": outputs, **config}
    beside = [Artifact(source=path.parent / data, target=data) for data in external_data(name, path)]
    return onnx_model(name, source=path, max_batch_size=size, beside=beside, profiles=profiles, **declared)


def _check_batch(name: str, size: int, tensors: Sequence[Mapping[str, Any]]) -> None:
    fixed = [tensor for tensor in tensors if tensor["dims"][:1] != [-1]]
    if fixed:
        first = fixed[0]["dims"][0] if fixed[0]["dims"] else "absent"
        raise DeclarationError(
            where=name,
            found=f"max_batch_size {size}, and the first size of {fixed[0]['name']} is fixed to {first} in the file",
            expected="a first size that varies is needed to batch",
            fix="Export the model with a dynamic batch, or take max_batch_size out",
        )


def onnx_model(
    name: str,
    *,
    source: Path,
    max_batch_size: int,
    beside: Sequence[Artifact] = (),
    profiles: Mapping[str, Mapping[str, Any]] | None = None,
    **config: Any,
) -> Model:
    """A model of an ONNX file that need not exist yet: tensors are given, not read.

    Args:
        source: the file; a relative path lies below the folder of exports.
        beside: further files of the version folder, such as weights outside the ONNX file.
        config: any part of ModelConfig, by Triton's names. A window is set for a model that batches, an instance on
            the CPU, on the first GPU in the gpu profile, and a warm-up where every size is known.
    """
    batching = {"dynamic_batching": {"max_queue_delay_microseconds": 5000}} if max_batch_size > 0 else {}
    sequences = {"sequence_batching", "dynamic_batching"} & config.keys()
    gpu = {"instance_group": [{"kind": "KIND_GPU", "count": 1, "gpus": [0]}], **(profiles or {}).get("gpu", {})}
    return Model(
        name=name,
        config={
            "backend": "onnxruntime",
            "max_batch_size": max_batch_size,
            **({} if sequences else batching),
            "instance_group": [{"kind": "KIND_CPU", "count": 1}],
            **warmup(config.get("input", ())),
            **config,
        },
        profiles={**(profiles or {}), "gpu": gpu},
        artifacts=(Artifact(source=source, target="model.onnx"), *beside),
    )


def warmup(tensors: Sequence[Any]) -> dict[str, Any]:
    """A `model_warmup` of one request with zeros, so that the first caller does not wait for allocations.

    Nothing where a size varies: no one can say which size would be the right one. `batch_size` is 1 also for a model
    that does not batch: a sample with 0 is skipped.
    """
    known = [tensor for tensor in tensors if isinstance(tensor, Mapping) and not tensor.get("optional")]
    if not known or any(-1 in tensor.get("dims", [-1]) for tensor in known):
        return {}
    inputs = {
        tensor["name"]: {"data_type": tensor["data_type"], "dims": list(tensor["dims"]), "zero_data": True}
        for tensor in known
    }
    return {"model_warmup": [{"name": "zeros", "batch_size": 1, "inputs": inputs}]}


def gpu_batching(batch: int, tensors: Sequence[Any]) -> dict[str, Any]:
    """What a network that batches needs on a GPU: a short window, an end to waiting, and its memory taken before the
    first request, alone and in the largest batch, at the sizes that requests have.

    Bytes are drawn at random, as a picture has all of them; of floats that would be no numbers, so these are zeros.
    """
    policy = {
        "timeout_action": "REJECT",
        "default_timeout_microseconds": LONGEST_WAIT_US,
        "allow_timeout_override": True,  # a caller who has less time says so
    }
    one = warmup(tensors)["model_warmup"][0]
    inputs = {
        name: {"data_type": tensor["data_type"], "dims": tensor["dims"], "random_data": True}
        if tensor["data_type"] == "TYPE_UINT8"
        else tensor
        for name, tensor in one["inputs"].items()
    }
    return {
        "dynamic_batching": {"max_queue_delay_microseconds": 2000, "default_queue_policy": policy},
        "model_warmup": [
            {"name": "one", "batch_size": 1, "inputs": inputs},
            {"name": "full", "batch_size": batch, "inputs": inputs},
        ],
    }


def read_tensors(name: str, path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Inputs and outputs of an ONNX file by Triton's names, the batch included in dims; -1 for a size that varies.

    Raises:
        DeclarationError: there is no such file, or it is no ONNX model, or a tensor is of a type Triton lacks.
    """
    graph = load_graph(name, path).graph
    weights = {weight.name for weight in graph.initializer}
    inputs = [_tensor(name, value) for value in graph.input if value.name not in weights]
    return inputs, [_tensor(name, value) for value in graph.output]


def external_data(name: str, path: Path) -> tuple[str, ...]:
    """Names of the files beside an ONNX file that hold its weights."""
    locations = {
        entry.value
        for weight in load_graph(name, path).graph.initializer
        for entry in weight.external_data
        if entry.key == "location"
    }
    return tuple(sorted(locations))


def load_graph(name: str, path: Path) -> Any:
    """The parsed file, without weights that lie outside it.

    Raises:
        DeclarationError: there is no such file, or it is no ONNX model.
    """
    import onnx as library
    from google.protobuf.message import DecodeError

    if not path.is_file():
        raise DeclarationError(
            where=name,
            found=f"there is no file {path}",
            expected="an ONNX file is needed",
            fix="Name the right file, or export the model first",
        )
    try:
        return library.load(str(path), load_external_data=False)
    except DecodeError as error:
        raise DeclarationError(
            where=name,
            found=f"{path.name} is no ONNX model ({error})",
            expected="an ONNX file is needed",
            fix="Export the model as ONNX",
        ) from error


def _tensor(model: str, value: Any) -> dict[str, Any]:
    import onnx as library

    words = {"FLOAT": "FP32", "DOUBLE": "FP64", "FLOAT16": "FP16", "BFLOAT16": "BF16"}
    word = library.TensorProto.DataType.Name(value.type.tensor_type.elem_type)
    data_type = f"TYPE_{words.get(word, word)}"
    if data_type not in DATA_TYPES:
        raise DeclarationError(
            where=f"{model}, tensor {value.name}",
            found=f"its type is {word}",
            expected="a tensor of a type that Triton has is needed",
            fix="Cast it in the graph when exporting",
        )
    dims = [dim.dim_value if dim.dim_value > 0 else -1 for dim in value.type.tensor_type.shape.dim]
    return {"name": value.name, "data_type": data_type, "dims": dims}
