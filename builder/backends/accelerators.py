"""How NVIDIA's ONNX Runtime backend computes on a GPU: by CUDA, or by TensorRT with CUDA for what that cannot do.

In: options by what they mean. Out: `optimization` for the gpu profile, in Triton's names. Values are strings there, and
an option that the backend does not know is passed over in silence: so they are checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builder.errors import DeclarationError

PRECISIONS = ("FP32", "FP16", "INT8")
Shapes = Mapping[str, tuple[Sequence[int], Sequence[int], Sequence[int]]]


def cuda(**options: str | int) -> dict[str, Any]:
    """`optimization` with options of the CUDA execution provider: `gpu_mem_limit`, `arena_extend_strategy`..."""
    return with_accelerator({}, "cuda", {name: str(value) for name, value in options.items()})


def tensorrt(
    *,
    precision: str = "FP16",
    workspace_bytes: int = 1 << 30,
    cache: str | None = None,
    shapes: Shapes | None = None,
    **options: str | int,
) -> dict[str, Any]:
    """`optimization` with TensorRT: engines are built at the first load, which takes minutes.

    Args:
        precision: FP32, FP16 or INT8.
        workspace_bytes: what building and running an engine may take for the moment.
        cache: a folder on the server to keep engines in; it must be writable there.
        shapes: for inputs whose sizes vary, by name: smallest, usual and largest shape, the batch included. Without
            them an engine is built anew whenever a new size comes.
        options: further ones by ONNX Runtime's names (`trt_builder_optimization_level`).

    Raises:
        DeclarationError: a precision that there is not, or shapes of different lengths or out of order.
    """
    if precision not in PRECISIONS:
        raise DeclarationError(
            where="tensorrt",
            found=f"precision {precision!r}",
            expected=f"one of {', '.join(PRECISIONS)} is needed",
            fix="Write one of these",
        )
    parameters = {"precision_mode": precision, "max_workspace_size_bytes": str(workspace_bytes)}
    if cache is not None:
        parameters |= {"trt_engine_cache_enable": "1", "trt_engine_cache_path": cache}
    for place, name in enumerate(("min", "opt", "max")):
        told = ",".join(f"{key}:{_shape(key, three)[place]}" for key, three in (shapes or {}).items())
        parameters |= {f"trt_profile_{name}_shapes": told} if told else {}
    return with_accelerator({}, "tensorrt", parameters | {name: str(value) for name, value in options.items()})


def with_accelerator(optimization: Mapping[str, Any], name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """`optimization` with options of one accelerator more; those it has keep their place."""
    accelerators = dict(optimization.get("execution_accelerators", {}))
    found = [dict(one) for one in accelerators.get("gpu_execution_accelerator", ())]
    mine = next((one for one in found if one.get("name") == name), None)
    if mine is None:
        mine = {"name": name}
        found.append(mine)
    mine["parameters"] = {**mine.get("parameters", {}), **parameters}
    return {**optimization, "execution_accelerators": {**accelerators, "gpu_execution_accelerator": found}}


def _shape(name: str, three: Sequence[Sequence[int]]) -> tuple[str, ...]:
    ordered = len(three) == 3 and len({len(one) for one in three}) == 1
    if not ordered or any(not low <= usual <= high for low, usual, high in zip(*three, strict=True)):
        raise DeclarationError(
            where="tensorrt",
            found=f"shapes of {name}: {', '.join(str(list(one)) for one in three)}",
            expected="smallest, usual and largest shape of one length, each no larger than the next, are needed",
            fix="Write for example [1, 3, 640, 640], [4, 3, 640, 640], [8, 3, 640, 640]",
        )
    return tuple("x".join(str(size) for size in one) for one in three)
