"""Our verdict on a repository folder: for each model whether a server will load it, by the rules' word."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.catalog import target
from builder.check import check_catalog
from builder.findings import Finding
from builder.folder.reading import read_repository


def expected(repository: Path) -> Mapping[str, tuple[Finding, ...]]:
    """For each model the findings for which the server refuses it; none for one that loads."""
    catalog = read_repository(repository, target("embedded"))
    refusing: dict[str, list[Finding]] = {name: [] for name in catalog.entries}
    for finding in check_catalog(catalog):
        if finding.refused:
            refusing[finding.model].append(finding)
    return {name: tuple(found) for name, found in refusing.items()}
