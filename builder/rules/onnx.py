"""Rules about ONNX files against their config: names, types, dims, batches, release limits (onnxruntime backend).

NVIDIA's backend refuses each at load, in words that name one side; here the message names both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule
from builder.folder.onnxfile import OnnxFile, OnnxTensor
from builder.rules.backends import backend_of, model_file
from builder.tensors import did_you_mean, dims_agree, dims_text, full_dims

_WHY = "ort: the backend compares its file with the config when the model loads"


@rule("TK851", "error", "model file that is no ONNX", why=_WHY)
def no_onnx(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A file that cannot be read as ONNX: another format, cut off, or a pointer of Git LFS."""
    for file, onnx in _files(entry):
        if onnx.problem:
            yield Problem(
                file=file,
                found=onnx.problem,
                expected="an ONNX file is needed",
                fix="Export or fetch it again (a file of a few hundred bytes is often a pointer of Git LFS)",
            )


@rule("TK852", "error", "tensor that the ONNX file does not have", why=f"{_WHY}: unexpected inference input (ENS-06)")
def unknown_tensor(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A config's input or output that is none of the file's."""
    for _, onnx in _readable(entry):
        for side, known in (("input", onnx.inputs), ("output", onnx.outputs)):
            names = [one.name for one in known]
            for index, declared in enumerate(entry.config.get(side, ())):
                name = declared.get("name", "")
                if name and name not in names and not _is_made(entry, name):
                    yield Problem(
                        tensor=name,
                        side=side,
                        path=(side, index, "name"),
                        found=f"the file has no {side} {name}{did_you_mean(name, names)}",
                        expected=f"one of {', '.join(names)} is needed",
                        fix="Write the file's own name",
                    )


@rule("TK853", "error", "input of the ONNX file that the config leaves out", why=_WHY)
def missing_tensor(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """A config that declares some inputs must declare all."""
    declared = entry.tensors("input")
    for _, onnx in _readable(entry) if declared else ():
        for one in onnx.inputs:
            if one.name not in declared and not _is_made(entry, one.name):
                yield Problem(
                    tensor=one.name,
                    side="input",
                    path=("input",),
                    found=f"the config has no input {one.name}, and the file needs it",
                    expected="all inputs of the file are needed, or none: then the server reads them itself",
                    fix=f'Add {{ name: "{one.name}" data_type: {one.data_type} dims: {_shown(entry, one)} }}',
                )


@rule("TK854", "error", "data type that is not the ONNX file's", why=f"{_WHY} (YOL-04, WHI-05)")
def other_type(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Precision of the weights and type of inputs and outputs are different things: the file's type counts."""
    for side, index, declared, one in _pairs(entry):
        given = declared.get("data_type")
        if one.data_type is not None and given is not None and given != one.data_type:
            yield Problem(
                tensor=one.name,
                side=side,
                path=(side, index, "data_type"),
                found=f"file: {one.data_type}, config: {given}",
                expected=f"{one.data_type} is needed, the type in the file",
                fix=f"Write data_type: {one.data_type}, or export the file with {given} at this {side}",
            )


@rule("TK855", "error", "dims that are not the ONNX file's", why=f"{_WHY} (BAT-05)")
def other_dims(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """With batches, dims come without the batch; a reshape is what the file sees."""
    for side, index, declared, one in _pairs(entry):
        if one.dims is None or not declared.get("dims"):
            continue
        dims = tuple(declared["reshape"].get("shape", ())) if "reshape" in declared else tuple(declared["dims"])
        full = full_dims(dims, batching=entry.is_batching)
        if entry.is_batching and one.dims and one.dims[0] != -1:
            continue  # TK856 says it better
        if full == () and one.dims in ((), (1,)):
            continue
        if not dims_agree(full, one.dims):
            repeated = entry.is_batching and dims_agree(dims, one.dims)
            yield Problem(
                tensor=one.name,
                side=side,
                path=(side, index, "dims"),
                found=f"the file has {len(one.dims)} dimensions {dims_text(one.dims)}, the config {len(full)}"
                f" {dims_text(full)}{', the batch in front included' if entry.is_batching else ''}",
                expected=f"dims: {_shown(entry, one)} is needed",
                fix=f"Write dims: {_shown(entry, one)}"
                + (": max_batch_size above 0 puts the batch in front by itself" if repeated else ""),
            )


@rule(
    "TK856",
    "error",
    "batching of an ONNX file with a fixed batch",
    why=f"{_WHY}: for the model to support batching the first dimension must be -1",
)
def fixed_batch(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """max_batch_size above 0, and a first dimension that does not vary."""
    for side, index, _, one in _pairs(entry):
        if entry.is_batching and one.dims is not None and (not one.dims or one.dims[0] != -1):
            size = one.dims[0] if one.dims else None
            yield Problem(
                tensor=one.name,
                side=side,
                path=(side, index, "dims"),
                found=f"max_batch_size is {entry.config['max_batch_size']}, and the file has {dims_text(one.dims)}"
                + (f" with a first size of {size}" if size else ""),
                expected="a first dimension that varies is needed to batch",
                fix="Export with a dynamic first dimension, or write max_batch_size: 0 and "
                f"dims: {dims_text(one.dims)}",
            )


@rule(
    "TK857",
    "error",
    "ONNX file newer than the target's ONNX Runtime",
    why="ort: Unsupported model IR version; Current official support for domain ai.onnx is till opset N",
)
def newer_file(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """The file's IR version and opset against what the release's ONNX Runtime reads."""
    limits = catalog.target.onnx_limits
    if limits is None:
        return
    version, ir_version, opset = limits
    for file, onnx in _readable(entry):
        for word, found, most in (("ir_version", onnx.ir_version, ir_version), ("opset", onnx.opset, opset)):
            if found > most:
                yield Problem(
                    file=file,
                    found=f"{word} {found}",
                    expected=f"ONNX Runtime {version} of {catalog.target.container} reads at most {most}",
                    fix=f"Export with {word} {most}, or serve with a later release",
                )


@rule(
    "TK858",
    "warning",
    "model that takes one number of rows only",
    why="A first size that is fixed makes dynamic batching impossible (YOL-03)",
    server="accepts",
)
def fixed_rows(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """max_batch_size 0 and the same fixed first size above 1 on every input and output."""
    if entry.is_ensemble or entry.is_batching:
        return
    declared = [*entry.tensors("input").values(), *entry.tensors("output").values()]
    firsts = {one["dims"][0] for one in declared if len(one.get("dims", ())) > 2}
    rows = next(iter(firsts), 0)
    if len(firsts) == 1 and rows > 1 and len(declared) > 1 and all(len(one.get("dims", ())) > 2 for one in declared):
        picture = any(len(one["dims"]) == 4 for one in declared)
        if picture:
            yield Problem(
                path=("input", 0, "dims"),
                found=f"every tensor has the first size {rows}",
                expected=f"every request must have exactly {rows} rows, and requests cannot be batched",
                fix="Export with a dynamic first dimension and write max_batch_size; until then pad in the caller",
            )


def _files(entry: Entry) -> Iterator[tuple[str, OnnxFile]]:
    if entry.folder is None or backend_of(entry.config) != "onnxruntime":
        return
    loaded = entry.loaded_versions()
    for version in entry.folder.versions:
        if version.number in loaded and version.name in entry.folder.onnx:
            yield f"{entry.name}/{version.name}/{model_file(entry.config)}", entry.folder.onnx[version.name]


def _readable(entry: Entry) -> Iterator[tuple[str, OnnxFile]]:
    return ((file, onnx) for file, onnx in _files(entry) if onnx.is_read and not onnx.problem)


def _pairs(entry: Entry) -> Iterator[tuple[str, int, Any, OnnxTensor]]:
    """Each declared tensor beside the file's own of that name."""
    for _, onnx in _readable(entry):
        for side, known in (("input", onnx.inputs), ("output", onnx.outputs)):
            by_name = {one.name: one for one in known}
            for index, declared in enumerate(entry.config.get(side, ())):
                if declared.get("name") in by_name:
                    yield side, index, declared, by_name[declared["name"]]


def _is_made(entry: Entry, name: str) -> bool:
    """Whether a batcher makes the tensor: a sequence's control or state, or a batch_input."""
    batching = entry.config.get("sequence_batching", {})
    return (
        any(one.get("name") == name for one in batching.get("control_input", ()))
        or any(name in (one.get("input_name"), one.get("output_name")) for one in batching.get("state", ()))
        or any(name in one.get("target_name", ()) for one in entry.config.get("batch_input", ()))
    )


def _shown(entry: Entry, one: OnnxTensor) -> str:
    dims = one.dims or ()
    return dims_text((dims[1:] if entry.is_batching else dims) or (1,))
