"""Why the newest attempt of a run ended, and what can be done: diagnosis, cure and what was tried, in one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...wire.rundir import RunDir
from ..diagnosis.engine import diagnose_run
from ..diagnosis.model import EvidenceLine, Finding
from ..model.errors import OperationError
from ..model.snapshot import RunSnapshot
from .cure import Cure, cure_of
from .rehearsal import Rehearsed, newest_rehearsal


class Explanation(NamedTuple):
    """Why an attempt ended, and what can be done."""

    findings: Sequence[Finding]
    exception: EvidenceLine | None = None
    """The last one of its log, where nothing is found."""
    cure: Cure | None = None
    rehearsed: Rehearsed | None = None


def explain(snapshot: RunSnapshot, environ: Mapping[str, str], arguments: Path) -> Explanation:
    """Why its newest attempt ended, and what can be done.

    Args:
        arguments: where is kept what programs said of their arguments.
    """
    run, findings = RunDir(snapshot.dir), diagnose_run(snapshot.dir)
    tried = newest_rehearsal(run)
    if not findings:
        from ..diagnosis.evidence import evidence_from_run_dir
        from ..diagnosis.log_text import last_exception

        return Explanation((), last_exception(evidence_from_run_dir(snapshot.dir).lines), None, tried)
    try:
        return Explanation(findings, None, cure_of(run, findings, environ, arguments), tried)
    except OperationError:  # its record cannot be read: nothing can be started from it
        return Explanation(findings, None, None, tried)
