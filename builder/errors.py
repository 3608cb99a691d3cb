"""What can go wrong while building.

    BuildError
    ├── DeclarationError   a value that cannot be declared: a short form that does not parse, a file that is not there
    ├── CheckError         the rules found errors; carries every finding
    ├── RenderError        a config that Triton's message cannot hold
    └── RepositoryError    the folder cannot be written as asked; nothing was changed

Every message has four parts: where, what was found, what is expected, what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from builder.findings import Finding


class BuildError(Exception):
    """Anything the builder refuses; `str()` is the whole message for a person."""


class FourPartError(BuildError):
    """A message in four parts, kept apart as well as joined."""

    def __init__(self, *, where: str, found: str, expected: str, fix: str) -> None:
        super().__init__(f"{where}: {found}; {expected}. {fix}.")
        self.where, self.found, self.expected, self.fix = where, found, expected, fix


class DeclarationError(FourPartError):
    """A value that cannot be declared at all."""


class RenderError(FourPartError):
    """A config that Triton's ModelConfig message cannot hold."""


class RepositoryError(FourPartError):
    """The repository folder cannot be written as asked; it was left as it was."""


class CheckError(BuildError):
    """The rules found errors.

    Attributes:
        findings: every finding, warnings and advice included, in order of models and steps.
    """

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        super().__init__("\n".join(str(finding) for finding in findings))
