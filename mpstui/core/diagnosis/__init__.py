"""Explaining crashes: what ended a training, on what evidence, and what to do about it.

``diagnose(evidence)`` weighs the rules of ``rules/`` against an ``Evidence``; the evidence comes from a log file
(``log_file.evidence_from_log``) or a run directory (``for_run.evidence_from_run_dir``). Importing this package loads no
rule and compiles no pattern: both happen on the first diagnosis. Names are imported when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..on_demand import names_on_demand

if TYPE_CHECKING:
    from .course import last_exception
    from .engine import diagnose
    from .log_file import evidence_from_log
    from .model import Evidence, EvidenceLine, Finding, HeartbeatEvidence, Kind, LogLine, Rule
    from .present import findings_as_json
    from .remedy import ArgumentChange, Changed, Remedy, apply_remedy
    from .supervision import supervisor_rules
else:
    __getattr__ = names_on_demand(
        __name__,
        course=("last_exception",),
        engine=("diagnose",),
        log_file=("evidence_from_log",),
        model=("Evidence", "EvidenceLine", "Finding", "HeartbeatEvidence", "Kind", "LogLine", "Rule"),
        present=("findings_as_json",),
        remedy=("ArgumentChange", "Changed", "Remedy", "apply_remedy"),
        supervision=("supervisor_rules",),
    )

__all__ = [
    "ArgumentChange",
    "Changed",
    "Evidence",
    "EvidenceLine",
    "Finding",
    "HeartbeatEvidence",
    "Kind",
    "LogLine",
    "Remedy",
    "Rule",
    "apply_remedy",
    "diagnose",
    "evidence_from_log",
    "findings_as_json",
    "last_exception",
    "supervisor_rules",
]
