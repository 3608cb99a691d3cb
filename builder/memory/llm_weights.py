"""Bytes of a language model's weights on each GPU: stored type, quantization, tensor and pipeline parallelism.

In: a `Network`. Out: bytes. Quantized checkpoints (AWQ, GPTQ, fp8, compressed-tensors, bitsandbytes) say how in their
config: matrices inside the layers shrink and get scales; token table, output, norms and biases stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from builder.memory.network import Network

DTYPE_BYTES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "fp8": 1, "int8": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How matrices are stored: a name for people, and bytes for each weight, its scales included."""

    name: str
    bytes_per_weight: Fraction


def quantization(config: Mapping[str, Any], method: str | None = None) -> Quantization | None:
    """How a checkpoint's matrices are stored; None if they are not quantized, or in a way that is not known.

    Args:
        config: its `quantization_config`.
        method: `quantization` among the engine's arguments, for weights that are quantized when loaded.
    """
    name = str(config.get("quant_method") or method or "").lower()
    if name == "compressed-tensors":
        groups = [group.get("weights") or {} for group in (config.get("config_groups") or {}).values()]
        first = groups[0] if groups else {}
        bits, size = int(first.get("num_bits") or 16), int(first.get("group_size") or 0)
        return _grouped(f"compressed-tensors, {bits} bits", bits, size if size > 0 else 0, zeros=False)
    if name in ("awq", "awq_marlin", "gptq", "gptq_marlin", "auto-round"):
        bits = int(config.get("bits") or config.get("w_bit") or 4)
        size = int(config.get("group_size") or config.get("q_group_size") or 128)
        return _grouped(f"{name} {bits} bits", bits, size if size > 0 else 0, zeros=True)
    if name in ("fp8", "fbgemm_fp8", "modelopt"):
        return Quantization(name="fp8", bytes_per_weight=Fraction(1))
    if name == "bitsandbytes":
        if config.get("load_in_8bit"):
            return Quantization(name="bitsandbytes int8", bytes_per_weight=Fraction(1))
        return Quantization(name="bitsandbytes 4 bits", bytes_per_weight=Fraction(1, 2) + Fraction(1, 64))
    if name == "mxfp4":
        return Quantization(name="mxfp4", bytes_per_weight=Fraction(1, 2) + Fraction(1, 32))
    return None


def _grouped(name: str, bits: int, size: int, *, zeros: bool) -> Quantization:
    """Weights in groups with a scale of two bytes each, and a zero point where the method has one."""
    each = Fraction(bits, 8)
    if size:
        each += (2 + (Fraction(bits, 8) if zeros else 0)) * Fraction(1, size)
    return Quantization(name=name, bytes_per_weight=each)


def weight_bytes(
    network: Network,
    *,
    dtype: str | None = None,
    method: str | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
) -> int:
    """Bytes of weights on the rank that holds most.

    Args:
        dtype: the engine's `dtype`; the checkpoint's own if None or "auto" (float32 is then loaded as float16).
        method: the engine's `quantization`.
    """
    plain = DTYPE_BYTES[engine_dtype(network, dtype)]
    how = quantization(network.quantization, method)
    matrix = how.bytes_per_weight if how else Fraction(plain)
    if tensor_parallel == pipeline_parallel == 1:
        return ceil(network.linear * matrix) + (network.embedding + network.head + network.small) * plain
    heads = network.attention[0].heads if network.attention else 1
    split = network.linear - network.kv_linear - network.unsplit
    on_rank = Fraction(split, tensor_parallel) + network.unsplit
    on_rank += Fraction(network.kv_linear, min(tensor_parallel, heads))
    stage = ceil(on_rank * matrix / pipeline_parallel) + network.small * plain // pipeline_parallel
    ends = network.embedding + (network.head if pipeline_parallel == 1 else 0)
    return stage + ceil(Fraction(max(ends, network.head) * plain, tensor_parallel))


def engine_dtype(network: Network, dtype: str | None) -> str:
    """The type that unquantized weights and activations have: vLLM loads a float32 checkpoint as float16 by itself."""
    if dtype and dtype != "auto":
        return dtype
    stored = network.dtype.removeprefix("torch.")
    return stored if stored in ("bfloat16", "float16") else "float16" if stored == "float32" else "bfloat16"
