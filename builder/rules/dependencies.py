"""The rule that an ensemble loads only if its steps do. It needs to know what the other rules found."""

from __future__ import annotations

from collections.abc import Iterator, Set

from builder.catalog import Catalog, Entry
from builder.findings import Problem, rule

_WHY = "core: ensemble X depends on Y which has no loaded version"


@rule("TK314", "error", "step of a model that does not load", why=_WHY)
def step_that_does_not_load(entry: Entry, catalog: Catalog) -> Iterator[Problem]:
    """Asked by `unloadable_steps`, which knows the models that are refused; alone it finds nothing."""
    return iter(())


def unloadable_steps(catalog: Catalog, refused: Set[str]) -> Iterator[tuple[Entry, Problem]]:
    """Each ensemble that would load but for a step, with that step; also ensembles of such ensembles."""
    fallen = set(refused)
    waiting = list(refused)
    while waiting:
        model = waiting.pop()
        for name in catalog.users.get(model, ()):
            ensemble = catalog.entries[name]
            for index, step in enumerate(ensemble.ensemble_steps()):
                if step.get("model_name") == model and name not in refused:
                    yield ensemble, _problem(index, model)
            if name not in fallen:
                fallen.add(name)
                waiting.append(name)


def _problem(index: int, model: str) -> Problem:
    return Problem(
        step=index,
        path=("ensemble_scheduling", "step", index, "model_name"),
        found=f"{model} does not load",
        expected="a model that loads is needed",
        fix=f"Correct {model}: its own findings say what is wrong",
    )
