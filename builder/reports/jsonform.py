"""A report as one JSON object; its keys are a promise to programs."""

from __future__ import annotations

import json

from builder.reports.values import Report

KEYS = ("code", "severity", "model", "file", "line", "step", "tensor", "found", "expected", "fix", "why")


def json_report(report: Report) -> str:
    """`{"target", "profile", "findings": [...]}`; null where a field has no meaning."""
    findings = [{key: getattr(one, key) for key in KEYS} for one in report.findings]
    whole = {"target": report.target, "profile": report.profile, "findings": findings}
    # A text that is no UTF-8 is shown with its bytes escaped.
    return json.dumps(whole, indent=2, ensure_ascii=True)
