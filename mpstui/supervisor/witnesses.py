"""What a run's files and locks prove: what a new supervisor has to do, and how far the training got."""

from __future__ import annotations

import contextlib
import os
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ..wire import heartbeat, liveness, storage
from ..wire.heartbeat import Heartbeat
from ..wire.liveness import ProcessIdentity, ProcessTable, is_same
from ..wire.records import ExitRecord, LaunchRecord, Spec, Status
from ..wire.rundir import RunDir, is_marked
from ..wire.storage import UnreadableRecord
from .family import Family

TAIL_BYTES = 256 * 1024
METRICS_TAIL_BYTES = 16 * 1024


class Duty(Enum):
    """What a supervisor has to do."""

    BEGIN = "begin"
    """The attempt was never started."""
    ADOPT = "adopt"
    """Its processes are alive without a supervisor."""
    BACK_OFF = "back_off"
    """It crashed, and an automatic restart is scheduled or queued."""
    CLOSE = "close"
    """It was asked to end, and ended unobserved: record that."""
    REST = "rest"
    """It has ended; only requests can bring new work."""


class Witnesses(NamedTuple):
    """The traces of the newest attempt."""

    attempt: int
    phase: str | None
    ended: bool
    """There is an exit record."""
    begun: bool
    """Its program was started: there is a recorded pid, output or a heartbeat."""
    alive: bool
    """``run.lock`` is held, or the recorded trainer runs and proves that it belongs to this run."""
    asked_to_end: bool = False
    restart_due: bool = False


def decide(seen: Witnesses) -> Duty:
    """Return the duty that follows from the witnesses."""
    if seen.ended:
        return Duty.BACK_OFF if seen.phase in ("backing_off", "queued") and seen.restart_due else Duty.REST
    if seen.alive:
        return Duty.ADOPT
    if not seen.begun:
        return Duty.BEGIN
    return Duty.CLOSE if seen.asked_to_end else Duty.REST


def gather(run: RunDir, status: Status | None, table: ProcessTable, boot_id: str) -> Witnesses:
    """Gather the witnesses of a run's newest attempt."""
    recorded = status.attempt if status else 0
    attempt = max([recorded, *run.attempt_numbers(), 1])
    ours = status if status is not None and status.attempt == attempt else None
    paths = run.attempt(attempt)
    trainer, leader = ours.trainer if ours else None, recorded_family(run, ours, boot_id, table)[0].leader
    return Witnesses(
        attempt=attempt,
        phase=ours.phase if ours else None,
        ended=paths.exit.exists(),
        begun=trainer is not None or size_of(paths.output) > 0 or paths.heartbeat().exists(),
        alive=liveness.is_held(run.run_lock) or (leader is not None and is_same(table, leader)),
        asked_to_end=ours is not None and ours.phase in ("stopping", "stop_failed"),
        restart_due=ours is not None and ours.next_start is not None,
    )


def recorded_family(
    run: RunDir, status: Status | None, boot_id: str, table: ProcessTable
) -> tuple[Family, tuple[ProcessIdentity, ...]]:
    """Return the processes that a status names as an attempt's, and those among them that must be left alone.

    The latter are alive with the recorded pid and start time, but nothing proves that they belong to this run. A
    trainer that is gone remains the leader, with an impossible start time: a zombie's session and group prove nothing.
    """
    if status is None or status.boot_id != boot_id:
        return Family(None), ()
    named = [*([status.trainer] if status.trainer else []), *status.tree]
    unmarked = [member for member in named if not is_marked(run, member.pid)]
    strangers = tuple(member for member in unmarked if is_same(table, member))
    leader = status.trainer
    if leader in unmarked:
        leader = None if leader in strangers else ProcessIdentity(leader.pid, -1)
    return Family(leader, tuple(member for member in status.tree if member not in unmarked)), strangers


def read_exit(run: RunDir, attempt: int) -> ExitRecord | None:
    """Return the exit record of an attempt; None if there is none or it cannot be read."""
    return storage.read_or_none(ExitRecord, run.attempt(attempt).exit)


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    found = storage.stat_of(path)
    return found.st_size if found else 0


def read_tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """Return the last ``limit`` bytes of a file as text; empty if it cannot be read."""
    try:
        with storage.open_file(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def newest_beat(run: RunDir, spec: Spec, attempt: int, since: float | None = None) -> Heartbeat | None:
    """Return the attempt's newest heartbeat, or None.

    Args:
        since: Unix seconds; a heartbeat from a watched file outside the run directory must not be older.
    """
    found, watched = heartbeat.read(run.attempt(attempt).heartbeat()), spec.watch.get("heartbeat")
    if found is not None or not watched:
        return found
    try:
        found = heartbeat.read(Path(spec.launch.cwd) / Path(watched).expanduser())
    except RuntimeError:  # ~ of a user unknown to this machine
        return None
    return None if found is not None and since is not None and found.time < since else found


def newest_step(run: RunDir, spec: Spec, attempt: int, since: float | None = None) -> int | None:
    """Return the global step that the attempt last reported; None if it reported none."""
    beat = newest_beat(run, spec, attempt, since)
    if beat is not None and beat.step is not None:
        return beat.step
    for line in reversed(read_tail(run.metrics, METRICS_TAIL_BYTES).splitlines()):
        with contextlib.suppress(UnreadableRecord):
            point = storage.load_object(line)
            step = heartbeat.integer(point.get("step"))
            if step is not None and point.get("attempt") == attempt:
                return step
    return None


def counts_anew(run: RunDir, attempt: int) -> bool:
    """True if an attempt resumed from a checkpoint while its agent counted steps from the start of the process."""
    beat = heartbeat.read(run.attempt(attempt).heartbeat())
    launch = storage.read_or_none(LaunchRecord, run.attempt(attempt).launch)
    return beat is not None and beat.step_from == "process" and launch is not None and launch.checkpoint is not None
