"""Findings as the JSON of `mpstui diagnose --json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .model import Finding
from .remedy import Remedy


def findings_as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return the findings as plain data, in the order given."""
    return [
        {
            "id": finding.id,
            "title": finding.title,
            "confidence": finding.confidence,
            "evidence": [{"line": line.line, "text": line.text} for line in finding.evidence],
            "cause": finding.cause,
            "remedy": remedy_as_json(finding.remedy),
            "restart_on_cpu_helps": finding.restart_on_cpu_helps,
        }
        for finding in findings
    ]


def remedy_as_json(remedy: Remedy) -> dict[str, Any]:
    """Return a remedy as plain data; its text ends with the risk, and a variable with ``null`` is to be unset."""
    return {
        "text": f"{remedy.text} {remedy.risk}" if remedy.risk else remedy.text,
        "env": dict(remedy.env),
        "args": [{"role": change.role, "operation": change.operation, "value": change.value} for change in remedy.args],
        "device": remedy.device,
    }
