"""Failure memory: the same cause at the same step once more is said so, since starting again as it is will not help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...wire.rundir import RunDir
from .engine import diagnose
from .for_run import evidence_from_run_dir
from .model import Evidence, Finding

MOST_ATTEMPTS = 5
"""How many earlier attempts are looked at: each costs a look into its log."""
STEP_TOLERANCE = 0.01
"""Heartbeats come at most once a second, so the last one is a few steps behind the end."""
LEAST_TOLERANCE_STEPS = 3


def diagnose_run(directory: Path) -> tuple[Finding, ...]:
    """Explain the newest attempt of a run, with what earlier attempts say about it."""
    return with_recurrence(diagnose(evidence_from_run_dir(directory)), directory)


def with_recurrence(findings: tuple[Finding, ...], directory: Path) -> tuple[Finding, ...]:
    """The findings, the first one's cause beginning with the earlier attempts that ended in the same way."""
    sentence = recurrence(findings[0], directory) if findings else None
    if sentence is None:
        return findings
    return replace(findings[0], cause=f"{sentence} {findings[0].cause}"), *findings[1:]


def recurrence(finding: Finding, directory: Path) -> str | None:
    """One sentence when earlier attempts ended by the same cause at about the same step; else None.

    Steps are those of the last heartbeats. Where one is unknown nothing is said: the same cause elsewhere is no news.
    """
    numbers = RunDir(directory).attempt_numbers()
    step = _step(evidence_from_run_dir(directory, attempt=numbers[-1])) if numbers else None
    if step is None:
        return None
    alike = [
        (number, before)
        for number in numbers[-1 - MOST_ATTEMPTS : -1]
        if (before := _step_of_same(directory, number, finding.id)) is not None and _is_near(before, step)
    ]
    if not alike:
        return None
    which = " and ".join(f"attempt {number} (step {before:,})" for number, before in alike)
    return f"Not for the first time: {which} ended by the same cause; this one at step {step:,}."


def _step_of_same(directory: Path, attempt: int, cause: str) -> int | None:
    """The last step of an attempt that failed by this cause."""
    evidence = evidence_from_run_dir(directory, attempt=attempt)
    if evidence.requested_by is not None or (step := _step(evidence)) is None:
        return None
    findings = diagnose(evidence)
    return step if findings and findings[0].id == cause else None


def _step(evidence: Evidence) -> int | None:
    return evidence.heartbeat.step if evidence.heartbeat else None


def _is_near(one: int, other: int) -> bool:
    return abs(one - other) <= max(LEAST_TOLERANCE_STEPS, STEP_TOLERANCE * max(one, other))
