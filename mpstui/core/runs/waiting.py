"""Runs that wait: for their turn, or for the moment of a restart. There is no daemon, each one's supervisor waits."""

from __future__ import annotations

from ...wire import liveness, records, rundir, storage
from ...wire.liveness import boot_id
from ...wire.records import Status
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord

_WAITING = (b'"queued"', b'"backing_off"')


def is_waiting(run: RunDir, status: Status) -> bool:
    """Whether a run waits for its turn: its supervisor says so, or said so before it died.

    What ran before and waits again does so at somebody's request, which is answered when its turn has come, or because
    its profile asks for a restart.
    """
    if status.phase != "queued":
        return False
    return liveness.is_held(run.supervisor_lock) or not _has_ended(run) or restart_is_wished(run) or _is_owed(status)


def is_abandoned(run: RunDir) -> bool:
    """Whether a run waits and its supervisor is dead. Costs one small file for a run that does not wait.

    A restart that its profile asks for is owed within the same boot only: nobody expects a training of last week to
    start by itself because they look.
    """
    try:
        data = run.status.read_bytes()
        if not any(word in data for word in _WAITING) or liveness.is_held(run.supervisor_lock):
            return False
        status = records.from_json(Status, storage.load_object(data))
        return (status.phase == "backing_off" and _is_owed(status)) or is_waiting(run, status)
    except (OSError, UnreadableRecord):
        return False


def _is_owed(status: Status) -> bool:
    """Whether a supervisor of this boot was to restart it."""
    return status.next_start is not None and status.boot_id == boot_id()


def _has_ended(run: RunDir) -> bool:
    numbers = run.attempt_numbers()
    return bool(numbers) and run.attempt(numbers[-1]).exit.exists()


def restart_is_wished(run: RunDir) -> bool:
    """Whether somebody asked for another attempt and has no answer yet."""
    return any(request.action == "restart" for request in rundir.unanswered(run))
