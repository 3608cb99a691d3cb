"""The page of all codes, and the explanation of one: both from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from builder.findings import Rule

GROUPS = {
    "TK10": "The text and its fields",
    "TK11": "Names, text and backend",
    "TK12": "What the server has",
    "TK13": "Parameters",
    "TK14": "The launch line",
    "TK20": "Inputs and outputs",
    "TK30": "Wiring of an ensemble",
    "TK31": "Wiring of an ensemble",
    "TK40": "The two ends of an edge",
    "TK50": "How many responses",
    "TK60": "Schedulers and queues",
    "TK61": "Schedulers and queues",
    "TK62": "Sequences",
    "TK63": "Tensors that the batcher makes",
    "TK70": "Instances",
    "TK71": "Warm-up",
    "TK72": "Memory",
    "TK80": "Versions",
    "TK81": "Folders and files",
    "TK82": "Folders and files",
    "TK83": "Python models",
    "TK84": "Python models",
    "TK85": "ONNX files",
    "TK86": "TensorRT files",
    "TK90": "Pipelines",
    "TK91": "Copies between a GPU and the host",
}
_SERVER = {"refuses": "does not load the model", "accepts": "loads the model and says nothing"}


def explanation(rule: Rule[Any]) -> str:
    """All that is known of a rule, for a terminal."""
    return (
        f"{rule.code}: {rule.title}\n\n{rule.description}\n\n"
        f"severity:  {rule.severity}\na server:  {_SERVER[rule.server]}\nwhy:       {rule.why}\n\n"
        f'Switch it off for a repository by tritonkit.toml in its folder:\n\n  [check]\n  ignore = ["{rule.code}"]'
    )


def codes_page(rules: Iterable[Rule[Any]]) -> str:
    """The page, as Markdown."""
    known = sorted(rules, key=lambda rule: rule.code)
    lines = [
        "# What `tritonkit check` finds",
        "",
        "Written by `tritonkit explain --all` from the rules in `builder/rules/`; do not edit it.",
        "",
        "An *error* is something a server refuses, or that fails or hangs at a request; a *warning* may be meant; "
        "*advice* costs speed, or somebody's time. "
        "A rule is switched off by its code in `tritonkit.toml`, in the repository's folder: "
        '`[check]`, `ignore = ["TK609"]`; for one model in `[check.models.NAME]`.',
    ]
    for title, group in groupby(known, key=lambda rule: GROUPS[rule.code[:4]]):
        lines += ["", f"## {title}", ""]
        for rule in group:
            lines += [
                f"### {rule.code} {rule.title}",
                "",
                f"{rule.description} *{rule.severity.capitalize()}*; a server {_SERVER[rule.server]}. "
                f"Source: {rule.why}.",
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"
