"""GPUs by name or by size, as data.

In: `L4`, `A100-80`, `80GiB`, `2xH100`, or what `nvidia-smi` prints. Out: `Gpu`s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from builder.errors import DeclarationError
from builder.tensors import did_you_mean

MIB, GIB = 1 << 20, 1 << 30
UNKNOWN_CONTEXT_BYTES = 500 * MIB
_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": MIB, "GIB": GIB, "G": GIB, "M": MIB}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU: bytes that CUDA reports as its total, bytes of one process' context, what it computes in."""

    name: str
    memory_bytes: int
    context_bytes: int = UNKNOWN_CONTEXT_BYTES
    fp8: bool = False
    bf16: bool = True


@cache
def known_gpus() -> Mapping[str, Gpu]:
    """Every GPU of the table, the smallest memory first."""
    text = resources.files("builder").joinpath("data/gpus.json").read_text(encoding="utf-8")
    rows = sorted(json.loads(text)["gpus"].items(), key=lambda row: row[1]["memory_mib"])
    return MappingProxyType({name: _gpu(name, row) for name, row in rows})


def gpus(text: str) -> tuple[Gpu, ...]:
    """The GPUs of `H100`, `2xL4`, `24GiB`, or of several of these with commas between.

    Raises:
        DeclarationError: no GPU of that name is known, and it is no size.
    """
    found: list[Gpu] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(?:(\d+)\s*[x*]\s*)?(.+?)\s*", part)
        if match is not None:
            found += [_one(match[2])] * int(match[1] or 1)
    return tuple(found) or (_one(text),)


def detected(listing: str) -> tuple[Gpu, ...]:
    """The GPUs of what `nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits` prints."""
    found = []
    for line in listing.splitlines():
        name, _, mib = line.rpartition(",")
        if mib.strip().isdigit():
            table = next((one for one in known_gpus().values() if _is_called(one.name, name.strip())), None)
            total = table.memory_bytes if table else int(mib) * MIB * 98 // 100
            found.append(
                Gpu(
                    name=name.strip(),
                    memory_bytes=min(total, int(mib) * MIB),
                    context_bytes=table.context_bytes if table else UNKNOWN_CONTEXT_BYTES,
                    fp8=bool(table and table.fp8),
                    bf16=table is None or table.bf16,
                )
            )
    return tuple(found)


def parse_bytes(text: str) -> int | None:
    """Bytes of `24GiB`, `512 MiB`, `80GB`; None for what is no size."""
    match = _SIZE.fullmatch(text.strip())
    unit = _SIZES.get(match[2].upper()) if match else None
    return int(float(match[1]) * unit) if match and unit else None


def bytes_text(count: int) -> str:
    """`1.50 GiB`, `12.0 MiB`, `900 B`."""
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.{2 if unit == 'GiB' else 1}f} {unit}"
    return f"{count} B"


def _one(text: str) -> Gpu:
    wanted = text.strip().lower()
    for name, gpu in known_gpus().items():
        if wanted in (name.lower(), name.lower().replace(" ", ""), name.lower().removeprefix("rtx ")):
            return gpu
    for name, gpu in known_gpus().items():
        if _is_called(name, text):
            return gpu
    size = parse_bytes(text)
    if size:
        return Gpu(name=text.strip(), memory_bytes=size)
    raise DeclarationError(
        where=f"GPU {text!r}",
        found=f"no GPU of this name is known, and it is no size{did_you_mean(text, known_gpus())}",
        expected=f"one of {', '.join(known_gpus())}, a size as 24GiB, or detected is needed",
        fix="Name one of these, or its memory",
    )


def _is_called(name: str, full: str) -> bool:
    return full.lower() in (one.lower() for one in _rows()[name].get("also", ()))


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files("builder").joinpath("data/gpus.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(text)["gpus"])


def _gpu(name: str, row: Mapping[str, Any]) -> Gpu:
    return Gpu(
        name=name,
        memory_bytes=row["memory_mib"] * MIB,
        context_bytes=row["context_mib"] * MIB,
        fp8=bool(row["fp8"]),
        bf16=bool(row.get("bf16", True)),
    )
