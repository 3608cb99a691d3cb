"""The builder: pipelines as Python values, checked completely, written as a Triton model repository.

from builder import Pipeline, Step, onnx, python
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builder.backends import cuda, existing, onnx, python, tensorrt, tensorrt_plan, vllm
    from builder.catalog import Catalog, Entry, Target, entry, target
    from builder.check import check_catalog, check_pipelines, checked_plan
    from builder.errors import BuildError, CheckError, DeclarationError, RenderError, RepositoryError
    from builder.findings import Finding
    from builder.model import Artifact, Model, Tree
    from builder.pipeline import Input, Pipeline, Step
    from builder.plan import Ensemble, Plan, make_plan

__all__ = [
    "Artifact",
    "BuildError",
    "Catalog",
    "CheckError",
    "DeclarationError",
    "Ensemble",
    "Entry",
    "Finding",
    "Input",
    "Model",
    "Pipeline",
    "Plan",
    "RenderError",
    "RepositoryError",
    "Step",
    "Target",
    "Tree",
    "check_catalog",
    "check_pipelines",
    "checked_plan",
    "cuda",
    "entry",
    "existing",
    "make_plan",
    "onnx",
    "python",
    "target",
    "tensorrt",
    "tensorrt_plan",
    "vllm",
]

# Module -> what of it is public. Each is imported when first asked for: a command's help needs none of them.
_PUBLIC = {
    "builder.backends": "cuda existing onnx python tensorrt tensorrt_plan vllm",
    "builder.catalog": "Catalog Entry Target entry target",
    "builder.check": "check_catalog check_pipelines checked_plan",
    "builder.errors": "BuildError CheckError DeclarationError RenderError RepositoryError",
    "builder.findings": "Finding",
    "builder.model": "Artifact Model Tree",
    "builder.pipeline": "Input Pipeline Step",
    "builder.plan": "Ensemble Plan make_plan",
}


def __getattr__(name: str) -> Any:
    """A public name, from its module."""
    for module, names in _PUBLIC.items():
        if name in names.split():
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'builder' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The public names beside the module's own."""
    return sorted({*globals(), *__all__})
