"""What can go wrong with the embedded server.

ServerError
├── CannotStart      something on this machine or in the call is not as needed; nothing was started
│   └── PortInUse
├── LoadFailed       at least one model does not load; holds one `LoadProblem` per model
├── ServerDied       the server process ended by itself
└── NotReadyInTime   still loading when the time limit came
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class ServerError(Exception):
    """The embedded server cannot do what was asked."""


class CannotStart(ServerError):
    """Something that the server needs is missing; nothing was started."""


class PortInUse(CannotStart):
    """Another process listens on a port that was asked for."""


class ServerDied(ServerError):
    """The server process ended by itself."""


class NotReadyInTime(ServerError):
    """The server was still loading when the time limit came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProblem:
    """Why one model does not load: the server's own words, where in the code, and what to do."""

    model: str
    words: str
    where: str = ""
    advice: str = ""

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.model}: {self.words}{place}" + (f"\n  {self.advice}" if self.advice else "")


class LoadFailed(ServerError):
    """At least one model does not load."""

    def __init__(self, problems: tuple[LoadProblem, ...], log_file: Path) -> None:
        self.problems = problems
        self.log_file = log_file
        listed = "\n".join(str(problem) for problem in problems)
        super().__init__(f"{listed}\nThe whole log of the server: {log_file}")
