"""Service times on paper: what a GPU's data sheet allows, times the share of it that is assumed to be reached.

A step is as slow as the slower of two things: its operations, and reading its weights (and the KV cache) once. So a
batch costs little more than one row until operations outweigh the weights. Nothing here is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuning.errors import TuningError
from tuning.times import ServiceTimes

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One kind of GPU: operations and bytes a second as they are reached, memory in bytes, dollars an hour."""

    name: str
    operations_per_s: float
    bytes_per_s: float
    memory_bytes: float
    hour: float


def gpu_named(name: str, reached: Mapping[str, float], hour: float | None = None) -> Gpu:
    """A GPU of the data sheets.

    Raises:
        TuningError: there is none of this name.
    """
    known = json.loads((DATA / "datasheets.json").read_text(encoding="utf-8"))["gpus"]
    if name not in known:
        raise TuningError("--gpu", name, f"one of {', '.join(known)} is needed", "See tuning/data/datasheets.json")
    sheet = known[name]
    return Gpu(
        name=name,
        operations_per_s=sheet["tera_ops"] * 1e12 * reached["operations"],
        bytes_per_s=sheet["gigabytes_per_s"] * 1e9 * reached["bandwidth"],
        memory_bytes=sheet["memory_gib"] * 2**30,
        hour=sheet["hour"] if hour is None else hour,
    )


def batch_times(model: Mapping[str, Any], gpu: Gpu) -> ServiceTimes:
    """Executions of a model that puts rows together: weights once, operations for each row."""
    weights_s = model["weight_gb"] * 1e9 / gpu.bytes_per_s
    row_s = model["tera_ops"] * 1e12 / gpu.operations_per_s
    sizes = {1, int(model["largest_batch"])}
    return ServiceTimes(
        seconds={rows: (model["launch_ms"] / 1000 + max(weights_s, rows * row_s),) for rows in sizes}, cores=1.0
    )


def token_step_s(model: Mapping[str, Any], gpu: Gpu, sequences: float, length: float) -> float:
    """One step of a generating model, a token for each of so many sequences of this length."""
    reading = model["weight_gb"] * 1e9 + sequences * length * model["kv_bytes_per_token"]
    computing = sequences * 2 * model["parameters_b"] * 1e9
    return max(reading / gpu.bytes_per_s, computing / gpu.operations_per_s)


def prompt_s(model: Mapping[str, Any], gpu: Gpu, tokens: float) -> float:
    """Reading a prompt."""
    return 2 * float(model["parameters_b"]) * 1e9 * tokens / gpu.operations_per_s
