"""What a supervisor finds when it arrives: pure, from the witnesses."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ..wire import liveness, records
from ..wire.liveness import ProcessTable, is_same
from ..wire.records import ExitRecord, Status
from ..wire.rundir import RunDir
from ..wire.storage import UnreadableRecord


class Duty(Enum):
    """What there is to do."""

    BEGIN = "begin"
    """The attempt was never started."""
    ADOPT = "adopt"
    """Its processes live without a supervisor."""
    BACK_OFF = "back_off"
    """It crashed and its restart is due, or was and waits for its turn."""
    CLOSE = "close"
    """We had asked it to end, and it did while nobody looked: say so."""
    REST = "rest"
    """It ended; only requests can bring new work."""


class Witnesses(NamedTuple):
    """What is left of the newest attempt."""

    attempt: int
    phase: str | None
    ended: bool
    """There is an exit record."""
    begun: bool
    """Its program was started: a recorded pid, or output, or a heartbeat."""
    alive: bool
    """``run.lock`` is held, or the recorded trainer runs."""
    asked_to_end: bool = False
    restart_due: bool = False


def decide(seen: Witnesses) -> Duty:
    """The duty that follows from the witnesses."""
    if seen.ended:
        return Duty.BACK_OFF if seen.phase in ("backing_off", "queued") and seen.restart_due else Duty.REST
    if seen.alive:
        return Duty.ADOPT
    if not seen.begun:
        return Duty.BEGIN
    return Duty.CLOSE if seen.asked_to_end else Duty.REST


def look(run: RunDir, status: Status | None, table: ProcessTable, boot_id: str) -> Witnesses:
    """Gather the witnesses of a run's newest attempt."""
    recorded = status.attempt if status else 0
    attempt = max([recorded, *run.attempt_numbers(), 1])
    ours = status if status is not None and status.attempt == attempt else None
    paths = run.attempt(attempt)
    trainer = ours.trainer_identity() if ours else None
    same_boot = ours is not None and ours.boot_id == boot_id
    return Witnesses(
        attempt=attempt,
        phase=ours.phase if ours else None,
        ended=paths.exit.exists(),
        begun=trainer is not None or _size(paths.output) > 0 or paths.heartbeat().exists(),
        alive=liveness.is_held(run.run_lock) or (same_boot and trainer is not None and is_same(table, trainer)),
        asked_to_end=ours is not None and ours.phase in ("stopping", "stop_failed"),
        restart_due=ours is not None and ours.next_start is not None,
    )


def read_exit(run: RunDir, attempt: int) -> ExitRecord | None:
    """The exit record of an attempt; None when there is none or it cannot be read."""
    try:
        return records.read(ExitRecord, run.attempt(attempt).exit)
    except (OSError, UnreadableRecord):
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
