"""Reads every telemetry source once, and says which of them tell something here and why the others do not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ..telemetry.platforms import default_sampler
from ..telemetry.reading import SourceReport
from ..telemetry.sampler import Sampler
from .report import Finding, Status

UNVERIFIED = "unverified: built to its documented form, no recording of the real thing was at hand"
PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.5
_UNITS = ("_bytes", "_celsius", "_watts")


def read_sources(
    make: Callable[[], Sampler] = default_sampler, *, patience_seconds: float = PATIENCE_SECONDS
) -> tuple[SourceReport, ...]:
    """How each source is doing, in order of preference; waits for those whose first value is still to come."""
    sampler = make()
    until = time.monotonic() + patience_seconds
    try:
        while True:
            sampler.sample({"doctor": (os.getpid(),)})
            reports = sampler.reports()
            if not any(report.waits for report in reports) or time.monotonic() > until:
                return reports
            time.sleep(_PAUSE_SECONDS)
    finally:
        sampler.close()


def judge_telemetry(reports: Sequence[SourceReport], system: str) -> Iterator[Finding]:
    """One line a source; a silent one is no problem of the training's."""
    for report in reports:
        mark = "" if report.verified else f" ({UNVERIFIED})"
        if report.reason:
            yield Finding("telemetry", Status.NOTE, f"telemetry: {report.name}: n/a, {report.reason}{mark}")
        else:
            yield Finding("telemetry", Status.OK, f"telemetry: {report.name}: {_told(report)}{mark}")
    if system == "Darwin":
        yield Finding("telemetry", Status.NOTE, f"telemetry: JetsamEvent reports, read after a kill ({UNVERIFIED})")


def facts(reports: Sequence[SourceReport]) -> list[dict[str, Any]]:
    """``[{"name", "verified", "period_seconds", "seconds", "reason", "waits", "gives"}]``."""
    return [asdict(report) for report in reports]


def _told(report: SourceReport) -> str:
    words = []
    for name in report.gives:
        for unit in _UNITS:
            name = name.removesuffix(unit)
        words.append(name.replace("_percent", " %").replace("_", " "))
    return ", ".join(words)
