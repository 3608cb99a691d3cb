"""Checking: every rule asked, every finding at once.

In: pipelines, or the catalog of any repository. Out: findings; for pipelines also the plan they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from builder.catalog import Catalog, Entry
from builder.errors import CheckError
from builder.findings import Finding, Path, Rule, finding
from builder.model import PROFILES
from builder.pipeline import Pipeline
from builder.plan import Plan, make_plan
from builder.rules import (
    ENSEMBLE_RULES,
    LAUNCH_RULES,
    MODEL_RULES,
    PIPELINE_RULES,
    STEP_THAT_DOES_NOT_LOAD,
    STRANGER_RULES,
    TEXT_RULES,
)
from builder.rules.dependencies import unloadable_steps
from builder.rules.folders import is_stranger
from builder.rules.pipelines import Declared
from builder.rules.text import is_readable

LAUNCH_LINE = "launch line"


def checked_plan(pipelines: Sequence[Pipeline], release: str = "embedded") -> Plan:
    """The plan of some pipelines, once no rule finds an error.

    Raises:
        CheckError: with every finding, when one is an error.
    """
    plan, findings = check_pipelines(pipelines, release)
    if any(found.severity == "error" for found in findings):
        raise CheckError(findings)
    return plan


def check_pipelines(
    pipelines: Sequence[Pipeline], release: str = "embedded", profiles: Sequence[str] = PROFILES
) -> tuple[Plan, tuple[Finding, ...]]:
    """The plan of some pipelines, and everything the rules find, for every profile."""
    plan = make_plan(pipelines, release)
    base = plan.catalog(PROFILES[0])
    findings = [
        finding(rule, pipeline.name, problem)
        for pipeline in pipelines
        for rule in PIPELINE_RULES
        for problem in rule(Declared(pipeline=pipeline, together=tuple(pipelines)), base)
    ]
    for profile in profiles:
        findings += check_catalog(plan.catalog(profile))
    families = {ensemble.name: ensemble.pipeline for ensemble in plan.ensembles}
    return plan, _each_once(findings, families)


def check_catalog(catalog: Catalog) -> tuple[Finding, ...]:
    """Everything the rules find in a repository: ensembles first, then the other models, each in order of steps."""
    found = {
        entry.name: _entry_findings(entry, catalog)
        for entry in sorted(catalog.entries.values(), key=lambda one: not one.is_ensemble)
    }
    for ensemble, problem in unloadable_steps(catalog, {name for name, all_of in found.items() if _is_refused(all_of)}):
        found[ensemble.name].append(finding(STEP_THAT_DOES_NOT_LOAD, ensemble.name, problem, ensemble))
    launched = [
        finding(rule, LAUNCH_LINE, problem)
        for rule in LAUNCH_RULES
        if catalog.launch is not None
        for problem in rule(catalog.launch, catalog)
    ]
    ordered = (one for name in found for one in sorted(found[name], key=lambda one: (one.step is None, one.step or 0)))
    return (*launched, *ordered)


def _entry_findings(entry: Entry, catalog: Catalog) -> list[Finding]:
    """What the rules find in one model. A text that does not parse is told alone: the rest of it is not there yet."""
    rules: tuple[Rule[Any], ...] = (*ENSEMBLE_RULES, *MODEL_RULES) if entry.is_ensemble else MODEL_RULES
    if is_stranger(entry):
        rules = STRANGER_RULES
    elif not is_readable(entry):
        rules = TEXT_RULES
    found = [finding(rule, entry.name, problem, entry) for rule in rules for problem in rule(entry, catalog)]
    taken_out = [issue.path for issue in entry.issues if issue.kind in ("type", "enum", "oneof")]
    broken = {*taken_out, *(path[:-1] for path in taken_out if path and isinstance(path[-1], int))}
    if broken:  # what was taken out of the config is not missing from the file
        codes = {rule.code for rule in TEXT_RULES}
        found = [one for one in found if one.code in codes or not _is_about(one.path, broken)]
    return found


def _is_about(path: Path, broken: Iterable[Path]) -> bool:
    """Whether a place of the config is, or holds, one of those whose value was taken out."""
    return any(path == one or (len(path) > 1 and one[: len(path)] == path) for one in broken)


def _is_refused(findings: Iterable[Finding]) -> bool:
    return any(one.refused for one in findings)


def _each_once(findings: Iterable[Finding], families: dict[str, str]) -> tuple[Finding, ...]:
    """The findings without those that a profile, or a derived ensemble, has in common with an earlier one."""
    seen: dict[tuple[object, ...], Finding] = {}
    for one in findings:
        family = families.get(one.model, one.model)
        text = f"{one.found}|{one.expected}".replace(one.model, family)
        seen.setdefault((one.code, family, one.step, one.tensor, text), one)
    return tuple(seen.values())
