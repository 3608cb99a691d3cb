"""Rules about pipelines as people declare them; what they become is checked by the other rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from builder.catalog import Catalog
from builder.findings import Problem, rule
from builder.pipeline import Pipeline
from builder.variants import MOST_CHOICES, derive_variants, deriving_inputs

_WHY = "A repository has one model of each name, and tritonkit derives ensembles from optional inputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A pipeline, and all that are built together with it."""

    pipeline: Pipeline
    together: tuple[Pipeline, ...]


@rule("TK901", "error", "two models of one name", why=_WHY)
def two_models(subject: Declared, catalog: Catalog) -> Iterator[Problem]:
    """Models of one name that differ, in one pipeline or in two that are built together."""
    first: dict[str, tuple[str, object]] = {}
    for pipeline in subject.together:
        for model in pipeline.models():
            where, other = first.setdefault(model.name, (pipeline.name, model))
            if other != model and pipeline is subject.pipeline:
                yield Problem(
                    found=f"{model.name} is declared in another way in {where}",
                    expected="one declaration for each name is needed",
                    fix="Make the model once and use it in both, or give one of them another name",
                )


@rule("TK902", "error", "optional input that cannot be left out", why=_WHY)
def not_optional(subject: Declared, catalog: Catalog) -> Iterator[Problem]:
    """An optional input without which nothing is left, so that no ensemble without it exists."""
    variants = derive_variants(subject.pipeline, catalog.entries)
    for name in deriving_inputs(subject.pipeline, catalog.entries)[:MOST_CHOICES]:
        if not any(name in variant.left_out for variant in variants):
            yield Problem(
                tensor=name,
                side="input",
                found=f"without {name} no output is left, or an input that is always sent has no use",
                expected="an optional input must leave a useful rest",
                fix=f"Take the ? off {name}, or make inputs optional that are of use only with it",
            )


@rule("TK903", "error", "too many optional inputs to derive ensembles for", why=_WHY)
def too_many_choices(subject: Declared, catalog: Catalog) -> Iterator[Problem]:
    """Each further optional input doubles the number of ensembles."""
    names = deriving_inputs(subject.pipeline, catalog.entries)
    if len(names) > MOST_CHOICES:
        yield Problem(
            found=f"{len(names)} optional inputs are needed by a step: {', '.join(names)}",
            expected=f"at most {MOST_CHOICES} are possible, which is {2**MOST_CHOICES} ensembles",
            fix="Declare inputs optional in the models that can do without them, or split the pipeline",
        )


@rule("TK904", "error", "name given twice", why=_WHY)
def names_twice(subject: Declared, catalog: Catalog) -> Iterator[Problem]:
    """Inputs and outputs of one name, or a pipeline named as a model or as another one."""
    for side, names in (
        ("input", [one.name for one in subject.pipeline.inputs]),
        ("output", list(subject.pipeline.outputs)),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield Problem(
                    tensor=name,
                    side=side,
                    found=f"{name} is declared {count} times",
                    expected="each name can be declared once",
                    fix="Keep one of them",
                )
    models = {model.name for pipeline in subject.together for model in pipeline.models()}
    name = subject.pipeline.name
    if name in models or sum(other.name == name for other in subject.together) > 1:
        yield Problem(
            found=f"there is another {'model' if name in models else 'pipeline'} of this name",
            expected="a name of its own is needed: the ensemble is called by it",
            fix="Rename the pipeline",
        )
