"""A model's configuration against its ONNX file: completed where it says nothing, refused where it disagrees.

The rules and the words are those of Triton's own ONNX Runtime backend, so that a repository which loads here loads
there, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ort_tensors import FileTensor, shape_text

Config = dict[str, Any]
Tensors = Mapping[str, FileTensor]

DEFAULT_MAX_BATCH_SIZE = 4


def is_complete(config: Config) -> bool:
    """Whether inputs and outputs are both given: then nothing at all is filled in, as in Triton's own backend."""
    return bool((config.get("input") or config.get("batch_input")) and config.get("output"))


def complete(config: Config, inputs: Tensors, outputs: Tensors) -> Config:
    """The configuration with batching, inputs and outputs filled in from the file.

    Raises:
        ValueError: batching is asked for, and the file has a fixed first dimension.
    """
    completed = complete_batching(config, [*inputs.values(), *outputs.values()])
    batches = completed["max_batch_size"] > 0
    if not (config.get("input") or config.get("batch_input")):
        completed["input"] = [described(tensor, batches) for tensor in inputs.values()]
    if not config.get("output"):
        completed["output"] = [described(tensor, batches) for tensor in outputs.values()]
    return completed


def complete_batching(config: Config, tensors: Sequence[FileTensor]) -> Config:
    """With a variable first dimension everywhere the model batches, up to 4 unless the configuration says more."""
    asked = int(config.get("max_batch_size", 0))
    if not all(tensor.shape and tensor.shape[0] == -1 for tensor in tensors):
        if asked:
            raise ValueError(
                f"autofill failed for model '{config['name']}': model does not support batching while non-zero "
                "max_batch_size is specified"
            )
        return dict(config)
    completed = config | {"max_batch_size": asked or DEFAULT_MAX_BATCH_SIZE}
    if completed["max_batch_size"] > 1 and not {"sequence_batching", "dynamic_batching"} & completed.keys():
        completed["dynamic_batching"] = {}
    return completed


def described(tensor: FileTensor, batches: bool) -> dict[str, Any]:
    """The entry for one tensor under `input` or `output`. A scalar per row is written as dims [1] with a reshape."""
    dims = list(tensor.shape[1:] if batches else tensor.shape)
    entry: dict[str, Any] = {"name": tensor.name, "data_type": tensor.data_type, "dims": dims or [1]}
    return entry | {"reshape": {"shape": []}} if batches and not dims else entry


def check(config: Config, inputs: Tensors, outputs: Tensors, initializers: Tensors) -> None:
    """Return if the file can do what the configuration says.

    Raises:
        ValueError: it cannot.
    """
    check_features(config)
    check_input_count(config, len(inputs))
    batches = config["max_batch_size"] > 0
    for entry in config["input"]:
        if entry.get("optional") and batches:
            refuse(config, f"optional input '{entry['name']}' is not supported for models that support batching")
        tensor = find(entry, {**inputs, **initializers}, "input")
        check_data_type(config, entry, tensor, "input")
        check_dims(config, entry, tensor, exact=False)
    for entry in config["output"]:
        tensor = find(entry, outputs, "output")
        check_data_type(config, entry, tensor, "output")
        check_dims(config, entry, tensor, exact=True)


def check_features(config: Config) -> None:
    """What Triton's own backend can do and this one cannot, said at load instead of wrongly done later."""
    for name in ("batch_input", "batch_output"):
        if config.get(name):
            refuse(config, f"`{name}` needs Triton's own onnxruntime backend; the embedded server has a stand-in")
    if config.get("sequence_batching", {}).get("state"):
        refuse(config, "implicit state needs Triton's own onnxruntime backend; the embedded server has a stand-in")
    for entry in [*config["input"], *config["output"]]:
        if entry["data_type"] == "TYPE_BF16":
            refuse(
                config, f"'{entry['name']}' is TYPE_BF16, which Python models of Triton 2.51 cannot read; use TYPE_FP32"
            )
    accelerators = config.get("optimization", {}).get("execution_accelerators", {})
    for accelerator in accelerators.get("cpu_execution_accelerator", []):
        raise ValueError(f"unknown Execution Accelerator '{accelerator['name']}' is requested")


def check_input_count(config: Config, provided: int) -> None:
    """As many required inputs as the file has; sequence controls count as inputs of the file."""
    controls = config.get("sequence_batching", {}).get("control_input", [])
    expected = sum(not entry.get("optional") for entry in config["input"]) + len(controls)
    if expected != provided:
        refuse(config, f"configuration expects {expected} inputs, model provides {provided}")


def find(entry: Config, tensors: Tensors, kind: str) -> FileTensor:
    """The file's tensor of this name."""
    if entry["name"] not in tensors:
        allowed = ", ".join(sorted(tensors))
        raise ValueError(f"unexpected inference {kind} '{entry['name']}', allowed {kind}s are: {allowed}")
    return tensors[entry["name"]]


def check_data_type(config: Config, entry: Config, tensor: FileTensor, kind: str) -> None:
    """The same on both sides."""
    if entry["data_type"] != tensor.data_type:
        refuse(
            config,
            f"configuration expects datatype {entry['data_type']} for {kind} '{tensor.name}', "
            f"model provides {tensor.data_type}",
        )


def check_dims(config: Config, entry: Config, tensor: FileTensor, *, exact: bool) -> None:
    """The same on both sides; a variable dimension of an input's file takes any size in the configuration."""
    dims = [int(size) for size in entry.get("reshape", entry).get("shape", entry["dims"])]
    batches = config["max_batch_size"] > 0
    where = f"model '{config['name']}', tensor '{tensor.name}'"
    if not tensor.shape:
        if any(size != 1 for size in dims):
            raise ValueError(f"{where}: the model has a scalar, the model configuration specifies {shape_text(dims)}")
        return
    if batches and tensor.shape[0] != -1:
        raise ValueError(
            f"{where}: for the model to support batching the shape should have at least 1 dimension and the first "
            f"dimension must be -1; but shape expected by the model is {shape_text(tensor.shape)}"
        )
    full = [-1, *dims] if batches else dims
    if len(full) != len(tensor.shape) or any(
        of_file != of_config and (exact or of_file != -1) for of_file, of_config in zip(tensor.shape, full, strict=True)
    ):
        batch = ", an initial batch dimension because max_batch_size > 0 followed by the dims" if batches else ""
        raise ValueError(
            f"{where}: the model expects {len(tensor.shape)} dimensions (shape {shape_text(tensor.shape)}) but the "
            f"model configuration specifies {len(full)} dimensions (shape {shape_text(full)}{batch})"
        )


def refuse(config: Config, reason: str) -> None:
    """Raise with the words Triton begins with."""
    raise ValueError(f"unable to load model '{config['name']}', {reason}")
