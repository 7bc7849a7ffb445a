"""Findings as the JSON of `mpstui diagnose --json`, and what is said where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .log_text import last_exception
from .model import Evidence, Finding, Kind
from .model import Remedy
from .log_text import EVIDENCE_WIDTH


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


def unexplained(findings: Sequence[Finding], evidence: Evidence) -> str | None:
    """Return the sentence for an end that no rule explains; ``None`` where a cause or an ending was found.

    The last exception of the log, or else its last line, is no cause, and the next thing to read.
    """
    if any(finding.kind is not Kind.SYMPTOM for finding in findings):
        return None
    exception = last_exception(evidence.lines)
    if exception is not None:
        return f"No known cause was found. The last exception, on line {exception.line}: {exception.text}"
    if evidence.exit_code == 0:
        return "It ended with exit code 0: there is no crash to explain."
    ending = next((line.text for line in reversed(evidence.lines) if line.text.strip()), None)
    if ending is None:
        return "No known cause was found, and there is no output."
    return f"No known cause was found. The output ends with: {ending.strip()[:EVIDENCE_WIDTH]}"


def remedy_as_json(remedy: Remedy) -> dict[str, Any]:
    """Return a remedy as plain data; its text ends with the risk, and a variable with ``null`` is to be unset."""
    return {
        "text": f"{remedy.text} {remedy.risk}" if remedy.risk else remedy.text,
        "env": dict(remedy.env),
        "args": [{"role": change.role, "operation": change.operation, "value": change.value} for change in remedy.args],
        "device": remedy.device,
    }
