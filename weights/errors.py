"""What can go wrong between a checkpoint and an export.

WeightsError
├── FetchError     a package or file could not be had, or is not the one that was pinned
└── ExportError    a checkpoint could not be read or turned into the served form
"""


class WeightsError(Exception):
    """Where, what was found, what is expected, what to do: one sentence each."""


class FetchError(WeightsError):
    """A source file is missing, unreachable, or has another SHA-256 than the pinned one."""


class ExportError(WeightsError):
    """A checkpoint is not of the kind that its exporter reads."""
