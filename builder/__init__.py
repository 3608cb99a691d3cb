"""The builder: pipelines as Python values, checked completely, written as a Triton model repository.

from builder import Pipeline, Step, onnx, python
"""

from builder.backends import cuda, existing, onnx, python, tensorrt, vllm
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
    "vllm",
]
