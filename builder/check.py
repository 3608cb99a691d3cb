"""Checking: every rule asked, every finding at once.

In: pipelines, or the catalog of any repository. Out: findings; for pipelines also the plan they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from builder.catalog import Catalog
from builder.errors import CheckError
from builder.findings import Finding, finding
from builder.model import PROFILES
from builder.pipeline import Pipeline
from builder.plan import Plan, make_plan
from builder.rules import ENSEMBLE_RULES, MODEL_RULES, PIPELINE_RULES
from builder.rules.pipelines import Declared


def checked_plan(pipelines: Sequence[Pipeline], release: str = "embedded") -> Plan:
    """The plan of some pipelines, once no rule finds an error.

    Raises:
        CheckError: with every finding, when one is an error.
    """
    plan, findings = check_pipelines(pipelines, release)
    if any(found.severity == "error" for found in findings):
        raise CheckError(findings)
    return plan


def check_pipelines(pipelines: Sequence[Pipeline], release: str = "embedded") -> tuple[Plan, tuple[Finding, ...]]:
    """The plan of some pipelines, and everything the rules find, for every profile."""
    plan = make_plan(pipelines, release)
    base = plan.catalog(PROFILES[0])
    findings = [
        finding(rule, pipeline.name, problem)
        for pipeline in pipelines
        for rule in PIPELINE_RULES
        for problem in rule(Declared(pipeline=pipeline, together=tuple(pipelines)), base)
    ]
    for profile in PROFILES:
        findings += check_catalog(plan.catalog(profile))
    families = {ensemble.name: ensemble.pipeline for ensemble in plan.ensembles}
    return plan, _each_once(findings, families)


def check_catalog(catalog: Catalog) -> tuple[Finding, ...]:
    """Everything the rules find in a repository: ensembles first, then the other models, each in order of steps."""
    findings: list[Finding] = []
    for entry in sorted(catalog.entries.values(), key=lambda one: not one.is_ensemble):
        rules = (*ENSEMBLE_RULES, *MODEL_RULES) if entry.is_ensemble else MODEL_RULES
        found = [finding(rule, entry.name, problem, entry) for rule in rules for problem in rule(entry, catalog)]
        findings += sorted(found, key=lambda one: (one.step is None, one.step or 0))
    return tuple(findings)


def _each_once(findings: Iterable[Finding], families: dict[str, str]) -> tuple[Finding, ...]:
    """The findings without those that a profile, or a derived ensemble, has in common with an earlier one."""
    seen: dict[tuple[object, ...], Finding] = {}
    for one in findings:
        family = families.get(one.model, one.model)
        text = f"{one.found}|{one.expected}".replace(one.model, family)
        seen.setdefault((one.code, family, one.step, one.tensor, text), one)
    return tuple(seen.values())
