"""What can go wrong with a release.

ReleaseError
├── FolderError     the repository, or the new version, is not as needed; nothing was changed
├── LoadError       the server does not load it, or can't be managed
└── DifferentError  the new version answers otherwise
"""


class ReleaseError(Exception):
    """Where, what was found, what is needed, what to do."""

    def __init__(self, where: str, found: str, expected: str = "", advice: str = "") -> None:
        facts = "; ".join(part for part in (found, expected) if part)
        super().__init__(f"{where}: {facts}. {advice}".strip() if advice else f"{where}: {facts}")


class FolderError(ReleaseError):
    """The repository, or the new version, is not as needed."""


class LoadError(ReleaseError):
    """The server does not do what it was asked."""


class DifferentError(ReleaseError):
    """The new version answers otherwise."""
