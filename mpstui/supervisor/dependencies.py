"""Whether what a queued run waits for has happened: pure rules over the witnesses of the other run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from ..wire import liveness, records
from ..wire.liveness import ProcessTable
from ..wire.records import ExitRecord, Spec, Status
from ..wire.rundir import RunDir
from ..wire.storage import UnreadableRecord
from . import progress, takeover


class Outcome(Enum):
    """How another run stands."""

    PENDING = "pending"
    OK = "ok"
    FAILED = "failed"
    MISSING = "missing"


class Verdict(Enum):
    """What that means for the one that waits."""

    WAIT = "wait"
    GO = "go"
    NEVER = "never"


def judge(when: str, outcome: Outcome) -> Verdict:
    """Apply one ``after`` rule: ``ok``, ``any`` or ``fail``."""
    if outcome is Outcome.PENDING:
        return Verdict.WAIT
    if outcome is Outcome.MISSING:
        return Verdict.NEVER
    if when == "any":
        return Verdict.GO
    return Verdict.GO if (outcome is Outcome.FAILED) == (when == "fail") else Verdict.NEVER


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """All of them must say go; one never is enough."""
    found = set(verdicts)
    if Verdict.NEVER in found:
        return Verdict.NEVER
    return Verdict.WAIT if Verdict.WAIT in found else Verdict.GO


def outcome(run: RunDir, table: ProcessTable, boot_id: str) -> Outcome:
    """Look at the other run. One that crashed and will be started again has no outcome yet."""
    if not run.path.is_dir():
        return Outcome.MISSING
    status = _status(run)
    seen = takeover.look(run, status, table, boot_id)
    if not seen.ended:
        waits = seen.alive or not seen.begun or liveness.is_held(run.supervisor_lock)
        return Outcome.PENDING if waits else Outcome.FAILED
    if status is not None and status.phase != "ended" and _goes_on(run, seen):
        return Outcome.PENDING
    return _of(run, seen)


def _goes_on(run: RunDir, seen: takeover.Witnesses) -> bool:
    return seen.alive or seen.restart_due or liveness.is_held(run.supervisor_lock)


def _of(run: RunDir, seen: takeover.Witnesses) -> Outcome:
    record = takeover.read_exit(run, seen.attempt)
    if record is None:
        return Outcome.FAILED
    return Outcome.OK if _finished(run, record) else Outcome.FAILED


def _finished(run: RunDir, record: ExitRecord) -> bool:
    """Code 0 nobody asked for, and the heartbeat, where there is one, says done."""
    spec = read_spec(run)
    beat = progress.newest_beat(run, spec, record.attempt, record.started) if spec else None
    done = beat is None or beat.phase in (None, "done")
    if record.unknown:
        return beat is not None and beat.phase == "done"
    return record.code == 0 and record.requested_by is None and done


def _status(run: RunDir) -> Status | None:
    try:
        return records.read(Status, run.status)
    except (OSError, UnreadableRecord):
        return None


def read_spec(run: RunDir) -> Spec | None:
    """What was asked of another run; None when it cannot be read."""
    try:
        return records.read(Spec, run.spec)
    except (OSError, UnreadableRecord):
        return None


def sentence(after: Mapping[str, str], found: Outcome) -> str:
    """Why a dependency can never be met any more."""
    run, when = after.get("run", "?"), after.get("when", "ok")
    if found is Outcome.MISSING:
        return f"run {run} does not exist"
    how = "finished" if found is Outcome.OK else "did not finish"
    return f"run {run} {how}, and this one was to start when it {'fails' if when == 'fail' else 'is done'}"
