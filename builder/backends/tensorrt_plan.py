"""TensorRT plans: an ONNX model that on a GPU runs as an engine built beforehand, and on a CPU as it is.

In: a model of `onnx(...)`. Out: the same model whose gpu profile has `backend: "tensorrt"` and `model.plan`, which
`tritonkit engines` builds where the GPU is. The plan computes in the types of the ONNX file: from TensorRT 11 on there
is no other precision (an export in float16 gives a plan in float16).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from builder.errors import DeclarationError
from builder.model import Artifact, Model, TensorRTPlan, thaw

FOLDER = Path("plans")
TRTEXEC = "/usr/src/tensorrt/bin/trtexec"
Shapes = Mapping[str, Sequence[Sequence[int]]]


def tensorrt_plan(model: Model, *, shapes: Shapes | None = None, workspace_mib: int = 1024) -> Model:
    """The model, run by a plan on a GPU.

    Args:
        shapes: for inputs whose sizes vary beside the batch: smallest, usual and largest shape, the batch included.
        workspace_mib: what building the plan may take for the moment.

    Raises:
        DeclarationError: it is no ONNX model, or nobody says how large an input is.
    """
    source = next((one.source for one in model.artifacts if one.target == "model.onnx"), None)
    if source is None or model.config.get("backend") != "onnxruntime":
        raise DeclarationError(
            where=model.name,
            found="it has no ONNX file",
            expected="a model of onnx(...) is needed to build a TensorRT plan from",
            fix="Declare it by onnx(...) first",
        )
    wanted = _shapes(model, shapes or {})
    told = repr((str(source), wanted, workspace_mib)).encode()
    target = FOLDER / f"{model.name}-{hashlib.sha256(told).hexdigest()[:12]}.plan"
    plan = TensorRTPlan(source=source, target=target, shapes=wanted, workspace_mib=workspace_mib)
    gpu = {name: part for name, part in thaw(model.profiles.get("gpu", {})).items() if name != "optimization"}
    built = [
        Artifact(source=target, target="model.plan", needed=False),
        Artifact(source=target.with_suffix(".json"), target="plan.json", needed=False),
    ]
    return replace(
        model,
        profiles={**thaw(model.profiles), "gpu": {**gpu, "backend": "tensorrt"}},
        artifacts=(*model.artifacts, *built),
        tensorrt=plan,
    )


def trtexec(plan: TensorRTPlan, source: str, target: str) -> list[str]:
    """The command that builds a plan. `--stronglyTyped` is needed before TensorRT 11 and does nothing since."""
    flags = [f"--onnx={source}", f"--saveEngine={target}", "--stronglyTyped", "--skipInference"]
    flags.append(f"--memPoolSize=workspace:{plan.workspace_mib}")
    for place, name in enumerate(("min", "opt", "max")):
        told = ",".join(f"{key}:{'x'.join(str(size) for size in three[place])}" for key, three in plan.shapes)
        flags += [f"--{name}Shapes={told}"] if told else []
    return [TRTEXEC, *flags]


def _shapes(model: Model, given: Shapes) -> tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]:
    """Shapes of every input: those given, else the dims behind every batch up to the largest."""
    batch = int(model.config.get("max_batch_size", 0))
    found = []
    for tensor in model.config.get("input", ()):
        name, dims = tensor["name"], tuple(tensor["dims"])
        three = tuple(tuple(int(size) for size in one) for one in given.get(name, ()))
        if not three and -1 not in dims:
            three = ((1, *dims), (batch, *dims), (batch, *dims)) if batch else ()
        elif not _is_ordered(three):
            raise DeclarationError(
                where=f"{model.name}, input {name}",
                found=f"shapes {[list(one) for one in three]}, dims {list(dims)}",
                expected="smallest, usual and largest shape, each no larger than the next, are needed",
                fix=f"Write shapes={{{name!r}: ([1, ...], [4, ...], [8, ...])}}",
            )
        found += [(name, three)] if three else []
    return tuple(found)


def _is_ordered(three: Sequence[tuple[int, ...]]) -> bool:
    if len(three) != 3 or len({len(one) for one in three}) != 1:
        return False
    return all(0 < low <= usual <= high for low, usual, high in zip(*three, strict=True))
