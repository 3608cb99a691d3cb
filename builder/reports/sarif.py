"""A report as SARIF 2.1.0, so that a code host shows findings on the lines of a change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from builder.findings import Finding, Rule
from builder.reports.values import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "advice": "note"}


def sarif_report(report: Report, rules: Iterable[Rule[Any]], folder: str) -> str:
    """The report; `folder` stands before every file's path, which is then relative to where the command ran."""
    known = sorted(rules, key=lambda rule: rule.code)
    index = {rule.code: position for position, rule in enumerate(known)}
    run = {
        "tool": {"driver": {"name": "tritonkit", "rules": [_rule(rule) for rule in known]}},
        "results": [_result(one, index[one.code], folder) for one in report.findings],
        "columnKind": "unicodeCodePoints",
        "properties": {"target": report.target, "profile": report.profile},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=True)


def _rule(rule: Rule[Any]) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.description},
        "help": {"text": rule.why},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, index: int, folder: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "logicalLocations": [{"name": finding.tensor or finding.model, "fullyQualifiedName": finding.where}]
    }
    if finding.file is not None:
        path = f"{folder.rstrip('/')}/{finding.file}" if folder not in ("", ".") else finding.file
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(path.encode("utf-8", "surrogateescape")), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": finding.line or 1},
        }
    same = "|".join((finding.code, finding.model, str(finding.step), str(finding.tensor), finding.found))
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": str(finding)},
        "locations": [location],
        "partialFingerprints": {
            "tritonkit/v1": hashlib.sha256(same.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        },
    }
