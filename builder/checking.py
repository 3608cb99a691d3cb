"""A folder or pipelines, checked and reported: what the command `check` does.

In: a folder, or pipelines, and for which server and hardware. Out: a `Report`, or the corrections that were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from builder.catalog import Catalog, target
from builder.check import check_catalog, check_pipelines
from builder.errors import DeclarationError
from builder.findings import Finding
from builder.fixes import Change, safe_changes, write_changes
from builder.folder.reading import read_repository
from builder.launch import parse_launch
from builder.model import PROFILES
from builder.pipeline import Pipeline
from builder.reports.values import Report
from builder.rules import ALL_RULES
from builder.settings import FILE, Settings, read_settings
from builder.tensors import did_you_mean


def check_folder(
    repository: Path, release: str | None = None, profile: str | None = None, launch: str | None = None
) -> Report:
    """The report on a repository's folder; what is not given comes from its settings, or is embedded and cpu.

    Args:
        launch: the line that starts the server, if it is to be checked too.
    """
    settings = read_settings(repository, [rule.code for rule in ALL_RULES])
    release, profile = _chosen(settings, release, profile)
    catalog, findings = _folder(repository, release, profile, launch)
    kept = tuple(one for one in findings if settings.keeps(one))
    return Report(
        target=release,
        title=catalog.target.name,
        profile=profile,
        subject=str(repository),
        models=sum(not one.is_ensemble for one in catalog.entries.values()),
        ensembles=sum(one.is_ensemble for one in catalog.entries.values()),
        findings=kept,
        ignored=len(findings) - len(kept),
    )


def fix_folder(repository: Path, release: str | None = None, profile: str | None = None) -> tuple[Change, ...]:
    """Write the safe corrections of a repository's folder; the changes that were made."""
    settings = read_settings(repository, [rule.code for rule in ALL_RULES])
    catalog, findings = _folder(repository, *_chosen(settings, release, profile))
    changes = safe_changes(catalog, [one for one in findings if settings.keeps(one)])
    write_changes(repository, changes)
    return changes


def check_named_pipelines(pipelines: Sequence[Pipeline], release: str, profile: str | None = None) -> Report:
    """The report on pipelines, for one profile or for all."""
    profiles = PROFILES if profile is None else (profile,)
    plan, findings = check_pipelines(pipelines, release, profiles)
    return Report(
        target=release,
        title=target(release).name,
        profile=", ".join(profiles),
        subject=", ".join(plan.pipelines),
        models=len(plan.models),
        ensembles=len(plan.ensembles),
        findings=_by_model(findings),
    )


def _folder(
    repository: Path, release: str, profile: str, launch: str | None = None
) -> tuple[Catalog, tuple[Finding, ...]]:
    parsed = parse_launch(launch) if launch is not None else None
    catalog = read_repository(repository, target(release), profile, parsed)
    return catalog, check_catalog(catalog)


def _by_model(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings with those of one model together, models in the order of their first."""
    order = {name: index for index, name in reversed(list(enumerate(one.model for one in findings)))}
    return tuple(sorted(findings, key=lambda one: order[one.model]))


def _chosen(settings: Settings, release: str | None, profile: str | None) -> tuple[str, str]:
    release = release or settings.target or "embedded"
    profile = profile or settings.profile or PROFILES[0]
    try:
        target(release)
    except KeyError:
        raise DeclarationError(
            where=f"{FILE}, [check]",
            found=f"target {release!r} is no server that is known",
            expected="embedded or a container tag, such as 24.10 or 26.07-vllm, is needed",
            fix="Correct it",
        ) from None
    if profile not in PROFILES:
        raise DeclarationError(
            where=f"{FILE}, [check]",
            found=f"profile {profile!r}{did_you_mean(profile, PROFILES)}",
            expected=f"one of {', '.join(PROFILES)} is needed",
            fix="Correct it",
        )
    return release, profile
