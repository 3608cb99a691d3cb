"""A report for a person: grouped by model and step, with what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.text import Text

from builder.findings import Finding
from builder.reports.values import Report

_STYLES = {"error": "bold red", "warning": "bold yellow", "advice": "bold blue"}
_LABELS = ("found", "expected", "fix", "why")


def print_report(report: Report, console: Console) -> None:
    """Print every finding below its model, and the sum."""
    for line in report_lines(report):
        console.print(line)


def report_lines(report: Report) -> Iterator[Text]:
    """The lines of a report."""
    for model, findings in groupby(report.findings, key=lambda one: one.model):
        yield Text(_plain(model), "bold underline")
        for one in findings:
            yield from _finding(one)
        yield Text("")
    yield _sum(report)


def _finding(one: Finding) -> Iterator[Text]:
    place = _plain(one.where.removeprefix(one.model).removeprefix(", "))
    file = f"{one.file}:{one.line}" if one.file and one.line else one.file or ""
    head = Text.assemble("  ", (f"{one.severity} {one.code}", _STYLES[one.severity]))
    if place:
        head.append(f"  {place}", "bold")
    if file:
        head.append(f"  {_plain(file)}", "dim")
    yield head
    for label in _LABELS:
        yield Text(f"    {label + ':':<10}{_plain(getattr(one, label))}", "dim" if label == "why" else "")


def _sum(report: Report) -> Text:
    counts = [
        f"{report.count(severity)} {word if report.count(severity) == 1 else many}"
        for severity, word, many in (
            ("error", "error", "errors"),
            ("warning", "warning", "warnings"),
            ("advice", "piece of advice", "pieces of advice"),
        )
        if report.count(severity)
    ]
    found = ", ".join(counts) or "no findings"
    ignored = f"; {report.ignored} switched off by tritonkit.toml" if report.ignored else ""
    models = f"{report.models} model{'' if report.models == 1 else 's'}"
    ensembles = f"{report.ensembles} ensemble{'' if report.ensembles == 1 else 's'}"
    return Text(
        f"{report.subject}: {models}, {ensembles}, {found}{ignored} (for {report.title}, profile {report.profile})"
    )


def _plain(text: str) -> str:
    """The text without what a terminal would obey or could not print."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
