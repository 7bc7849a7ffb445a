"""Why the newest attempt of a run ended, and what can be done: diagnosis, cure and rehearsal in one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...wire.rundir import RunDir
from ..diagnosis.engine import diagnosis_of
from ..diagnosis.model import EvidenceLine, Finding
from ..model.errors import OperationError
from ..model.snapshot import RunSnapshot
from .cure import Cure, cure_of
from .rehearsal import Rehearsed, newest_rehearsal


class Explanation(NamedTuple):
    """Why an attempt ended, and what can be done."""

    findings: Sequence[Finding]
    exception: EvidenceLine | None = None
    """The last exception in its log; only if there is no finding."""
    cure: Cure | None = None
    rehearsed: Rehearsed | None = None


def explain(snapshot: RunSnapshot, environ: Mapping[str, str], arguments: Path) -> Explanation:
    """Return why the newest attempt of a run ended, and what can be done.

    Args:
        arguments: where programs' answers about their arguments are kept.
    """
    run, findings = RunDir(snapshot.dir), diagnosis_of(snapshot)
    tried = newest_rehearsal(run) if snapshot.is_ours else None
    if not findings:
        from ..diagnosis.evidence import evidence_of
        from ..diagnosis.log_text import last_exception

        return Explanation((), last_exception(evidence_of(snapshot).lines), None, tried)
    if not snapshot.is_ours:
        return Explanation(findings)
    try:
        return Explanation(findings, None, cure_of(run, findings, environ, arguments), tried)
    except OperationError:  # its record cannot be read: nothing can be started from it
        return Explanation(findings, None, None, tried)
