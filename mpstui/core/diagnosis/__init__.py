"""Explaining crashes: what ended a training, on what evidence, and what to do about it.

``diagnose(evidence)`` weighs the rules of ``rules/`` against an ``Evidence``; the evidence comes from a log file
(``log_file.evidence_from_log``) or a run directory (``for_run.evidence_from_run_dir``). Importing this package loads no
rule and compiles no pattern: both happen on the first diagnosis.
"""

from __future__ import annotations

from .course import last_exception
from .engine import diagnose
from .log_file import evidence_from_log
from .model import Evidence, EvidenceLine, Finding, HeartbeatEvidence, Kind, LogLine, Rule
from .present import findings_as_json
from .remedy import ArgumentChange, Changed, Remedy, apply_remedy
from .supervision import supervisor_rules

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
