"""Findings for people and for programs: text, JSON, SARIF, and the page of all codes."""
