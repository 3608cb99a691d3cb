"""What every model wants of the GPUs, the caches of language models left out.

In: the models for the profile `gpu`. Out: `Part`s. A session of ONNX Runtime holds its weights once for each instance;
one CUDA context on each GPU serves the whole server, and each Python model on a GPU is a process with its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.catalog import Catalog, Entry
from builder.handover.places import backend_name, gpus_of, instances_of, runs_onnx_in_python
from builder.memory.account import Part
from builder.memory.devices import MIB, Gpu, bytes_text
from builder.memory.engine import NON_TORCH_BYTES, Engine, engine_of, is_engine
from builder.memory.onnx_memory import OnnxMemory, onnx_memory
from builder.model import Model

WORKSPACE_BYTES = 64 * MIB
ARENA = "room in ONNX Runtime's arena for gaps, up to its gpu_mem_limit"
_IN_SERVER = ("onnxruntime", "tensorrt", "pytorch", "openvino")


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Parts of all GPUs, the engines among the models, limits of ONNX Runtime's arenas, and what had to be assumed."""

    parts: tuple[Part, ...]
    engines: tuple[Engine, ...]
    limits: Mapping[str, int]
    notes: tuple[str, ...]


def demand_of(
    models: Sequence[Model],
    catalog: Catalog,
    devices: Sequence[Gpu],
    exports: Path,
    *,
    reserved: Mapping[str, int] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Demand:
    """What the models want.

    Args:
        exports: the folder in which relative sources of artifacts lie.
        reserved: bytes of GPU memory by model, for what no file tells.
        arguments: arguments of every engine, in place of those in its `model.json`.
    """
    parts: list[Part] = []
    notes: list[str] = []
    found: list[Engine] = []
    limits: dict[str, int] = {}
    for model in models:
        entry = catalog.entries[model.name]
        on = gpus_of(entry.config, len(devices))
        if not on:
            continue
        if is_engine(model):
            engine = engine_of(model, exports, on[0]).changed(**(arguments or {}))
            found.append(engine)
            if method := engine.unknown_quantization:
                notes.append(f"{model.name}: how small {method} makes weights is not known here; {engine.dtype} counts")
            parts += engine_parts(engine, devices)
            continue
        process = backend_name(entry.config) == "python" or runs_onnx_in_python(catalog.target)
        mine = list(_of_files(model, entry, on, exports, notes, process))
        if model.device_bytes:
            why = "tensors of its own code, at the largest request"
            mine += [
                _part(gpu, model.name, "activations", model.device_bytes * on.count(gpu), why, exact=False)
                for gpu in dict.fromkeys(on)
            ]
        extra = (reserved or {}).get(model.name)
        if extra:
            mine += [_part(gpu, model.name, "reserved", extra, "given by --reserve") for gpu in dict.fromkeys(on)]
        elif not mine:
            notes.append(
                f"{model.name} has an instance on a GPU; what it takes there is in no file: "
                f"give --reserve {model.name}=SIZE"
            )
        if process:
            parts += [_context(gpu, model.name, devices, count=on.count(gpu)) for gpu in dict.fromkeys(on)]
        each = sum(one.bytes for one in mine if one.gpu == on[0]) // on.count(on[0])
        if backend_name(entry.config) == "onnxruntime" and each:
            limits[model.name] = -(-each * 5 // 4 // MIB) * MIB
            mine += [
                _part(gpu, model.name, "arena", (limits[model.name] - each) * on.count(gpu), ARENA, exact=False)
                for gpu in dict.fromkeys(on)
            ]
        parts += mine
    parts = [_context(gpu, "tritonserver", devices) for gpu in range(len(devices))] + parts
    return Demand(parts=tuple(parts), engines=tuple(found), limits=limits, notes=tuple(notes))


def _of_files(
    model: Model, entry: Entry, on: Sequence[int], exports: Path, notes: list[str], process: bool
) -> Iterator[Part]:
    """Weights and activations of the ONNX files of a model, for each of its instances."""
    batch = max(1, int(entry.config.get("max_batch_size", 0)))
    told = {name: size for name, size in model.usual.items() if isinstance(size, int)}
    for source in onnx_files(model, exports):
        mine = {name.partition(":")[2]: size for name, size in told.items() if name.startswith(f"{source.name}:")}
        sizes = told | mine
        if not source.is_file():
            notes.append(f"{model.name}: there is no {source}; it counts nothing until `tritonkit weights` made it")
            continue
        memory = onnx_memory(source, sizes, batch=sizes.get("batch", batch))
        if memory.assumed:
            notes.append(f"{model.name}, {source.name}: axes {', '.join(memory.assumed)} vary and were taken as 1")
        for gpu in dict.fromkeys(on):
            yield from _of_sessions(model.name, source.name, memory, gpu, on.count(gpu), process)


def _of_sessions(name: str, file: str, memory: OnnxMemory, gpu: int, count: int, process: bool) -> Iterator[Part]:
    times = f"{count} x " if count > 1 else ""
    yield _part(gpu, name, "weights", memory.weights * count, f"{times}{bytes_text(memory.weights)} in {file}")
    # inputs and outputs are the session's own where it runs in a process that feeds it from the host
    tensors = memory.activations + (memory.inputs + memory.outputs if process else 0)
    why = f"{times}{bytes_text(tensors)} of tensors at the largest batch, {bytes_text(WORKSPACE_BYTES)} of workspace"
    yield _part(gpu, name, "activations", (tensors + WORKSPACE_BYTES) * count, why, exact=False)


def engine_parts(engine: Engine, devices: Sequence[Gpu]) -> Iterator[Part]:
    """What an engine takes on each of its GPUs, its cache left out."""
    ways = f"TP {engine.tensor_parallel}" if engine.tensor_parallel > 1 else ""
    ways += f" PP {engine.pipeline_parallel}" if engine.pipeline_parallel > 1 else ""
    network = engine.network
    said = f"{network.parameters / 1e9:.2f} billion in {engine.storage} {ways}".strip()
    for gpu in engine.gpus:
        yield _context(gpu, engine.model, devices)
        yield _part(gpu, engine.model, "weights", engine.weights(), said)
        rows = min(engine.most_sequences, engine.batched_tokens)
        step = f"a step of {engine.batched_tokens} tokens, {rows} rows of logits"
        yield _part(gpu, engine.model, "activations", engine.activations() + NON_TORCH_BYTES, step, exact=False)
        if engine.graphs():
            yield _part(gpu, engine.model, "graphs", engine.graphs(), "captured CUDA graphs", exact=False)


def _context(gpu: int, owner: str, devices: Sequence[Gpu], count: int = 1) -> Part:
    each = devices[gpu].context_bytes if gpu < len(devices) else devices[-1].context_bytes
    why = f"CUDA context of {'its process' if count == 1 else f'{count} processes'}"
    return _part(gpu, owner, "context", each * count, why, exact=False)


def _part(gpu: int, owner: str, kind: str, size: int, why: str, *, exact: bool = True) -> Part:
    return Part(gpu=gpu, owner=owner, kind=kind, bytes=size, why=why, exact=exact)


def onnx_files(model: Model, exports: Path) -> tuple[Path, ...]:
    """The ONNX files among a model's artifacts."""
    from fnmatch import fnmatch

    found: list[Path] = []
    for artifact in model.artifacts:
        source = exports / artifact.source
        if source.suffix == ".onnx":
            found.append(source)
        elif "*" in source.name and source.parent.is_dir():
            found += [
                one
                for one in sorted(source.parent.glob("*.onnx"))
                if not any(fnmatch(one.name, pattern) for pattern in artifact.exclude)
            ]
    return tuple(found)


def processes(models: Sequence[Model], catalog: Catalog, devices: int = 0) -> Mapping[str, int]:
    """How many processes of the Python backend each model has, where the server sees so many GPUs."""
    found: dict[str, Any] = {}
    for model in models:
        config = catalog.entries[model.name].config
        if backend_name(config) in ("python", "vllm") or runs_onnx_in_python(catalog.target):
            found[model.name] = instances_of(config, devices)
    return found
