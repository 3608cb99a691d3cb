"""What a rule finds, and what a rule is.

A rule is a function that yields `Problem`s; `@rule` gives it its code, severity and reason. Asking a rule turns its
problems into `Finding`s, which know the file and line where the model came from one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from builder.catalog import Catalog, Entry

Severity = Literal["error", "warning", "advice"]
Path = tuple[str | int, ...]
Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing a rule objects to.

    Attributes:
        found, expected, fix: three of the four parts; sentences without their full stop.
        step: index of the ensemble's step in its config; None where no step is meant.
        tensor: the tensor meant, and `side` says what it is: "input", "output", "tensor" (of the ensemble).
        path: where in the config, as keys and indexes: ("input", 2, "dims"). Lines are looked up by it.
        why: one line, where the rule's own reason is too general.
        file, line: where it stands, for what is no place of the config.
    """

    found: str
    expected: str
    fix: str
    step: int | None = None
    tensor: str | None = None
    side: str = "tensor"
    path: Path = ()
    why: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem with its code, severity and place; `str()` is the line that a person reads.

    `refused` says that a server does not load the model because of it (or does not start at all).
    """

    code: str
    severity: Severity
    model: str
    found: str
    expected: str
    fix: str
    why: str
    step: int | None = None
    step_model: str | None = None
    tensor: str | None = None
    side: str = "tensor"
    path: Path = ()
    file: str | None = None
    line: int | None = None
    refused: bool = False

    @property
    def where(self) -> str:
        """`assistant, step 2 (llm), input TEXT`."""
        parts = [self.model]
        if self.step is not None:
            parts.append(f"step {self.step} ({self.step_model})" if self.step_model else f"step {self.step}")
        if self.tensor is not None:
            parts.append(f"{self.side} {self.tensor}")
        elif self.path and self.step is None:
            parts.append(path_text(self.path))
        return ", ".join(parts)

    def __str__(self) -> str:
        return f"{self.where}: {self.found}, {self.expected}. {self.fix}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Subject]):
    """A rule: its function and what is known of it.

    Attributes:
        title: what is wrong, in a few words; the heading of its page.
        why: one line with the source: a Triton document, a message, a section of its code.
        server: what a real server does with the same thing when it loads the model.
    """

    code: str
    severity: Severity
    title: str
    why: str
    server: Literal["refuses", "accepts"]
    ask: Callable[[Subject, Catalog], Iterable[Problem]] = field(repr=False)

    @property
    def description(self) -> str:
        """What the rule says of itself, in one line."""
        return " ".join((self.ask.__doc__ or self.title).split())

    def __call__(self, subject: Subject, catalog: Catalog) -> Iterator[Problem]:
        return iter(self.ask(subject, catalog))


def rule(
    code: str, severity: Severity, title: str, *, why: str, server: Literal["refuses", "accepts"] = "refuses"
) -> Callable[[Callable[[Subject, Catalog], Iterable[Problem]]], Rule[Subject]]:
    """Decorator that makes a `Rule` of a function that yields problems."""

    def make(ask: Callable[[Subject, Catalog], Iterable[Problem]]) -> Rule[Subject]:
        return Rule(code=code, severity=severity, title=title, why=why, server=server, ask=ask)

    return make


def finding(rule: Rule[Any], model: str, problem: Problem, entry: Entry | None = None) -> Finding:
    """The problem as a finding about a model, or about a pipeline (which has no entry)."""
    step = problem.step
    return Finding(
        code=rule.code,
        severity=rule.severity,
        model=model,
        found=problem.found,
        expected=problem.expected,
        fix=problem.fix,
        why=problem.why or rule.why,
        step=step if step is None or entry is None else entry.step_number(step),
        step_model=None if step is None or entry is None else entry.step_model(step),
        tensor=problem.tensor,
        side=problem.side,
        path=problem.path,
        file=problem.file or (None if entry is None else entry.file),
        line=problem.line if problem.file or problem.line or entry is None else entry.line(problem.path),
        refused=rule.server == "refuses",
    )


def path_text(path: Path) -> str:
    """`input[2].dims`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
