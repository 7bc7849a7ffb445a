"""What of a run's time is none of its training: the time between its attempts, and the start of one."""

from __future__ import annotations

from ...wire import storage
from ...wire.records import ExitRecord, LaunchRecord
from ...wire.rundir import AttemptDir, RunDir


def idle_before(run: RunDir, newest: LaunchRecord) -> float:
    """Seconds between the attempts up to the newest one, as far as their ends are on record. Rehearsals, which change
    nothing of a run, count as such, too."""
    idle, ended = 0.0, None
    for number in sorted(number for number in run.attempt_numbers() if number <= newest.attempt):
        attempt = run.attempt(number)
        launched = newest if number == newest.attempt else storage.read_or_none(LaunchRecord, attempt.launch)
        if launched is None or launched.rehearsal is not None:
            continue
        idle += max(0.0, launched.time - ended) if ended is not None else 0.0
        left = storage.read_or_none(ExitRecord, attempt.exit) if number != newest.attempt else None
        ended = left.ended if left is not None else None
    return idle


def training_began(attempt: AttemptDir, launch: LaunchRecord) -> float:
    """When it came to train: before that it loads torch and its data, which the average of its epochs leaves out.

    The agent locks its rank at the first step that it sees. Of a program without it that is the launch.
    """
    try:
        return max(launch.time, attempt.rank_lock(0).stat().st_mtime)
    except OSError:
        return launch.time
