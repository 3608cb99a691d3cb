"""What a report is made of."""

from __future__ import annotations

from dataclasses import dataclass

from builder.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that was found, and what it was checked for.

    Attributes:
        target: name of the server as the person gave it, `24.10` or `embedded`.
        title: the same in words.
        profile: "cpu", "gpu", or "cpu, gpu" for pipelines, which are checked for both.
        subject: what was checked, a folder or pipelines.
        models, ensembles: how many.
        ignored: how many findings the repository's settings switch off.
    """

    target: str
    title: str
    profile: str
    subject: str
    models: int
    ensembles: int
    findings: tuple[Finding, ...]
    ignored: int = 0

    def count(self, severity: str) -> int:
        """How many findings have this severity."""
        return sum(one.severity == severity for one in self.findings)
