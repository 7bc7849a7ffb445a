"""How long a run has trained, less the time between its attempts and before its first step; how long it still takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...wire import storage
from ...wire.records import ExitRecord, LaunchRecord
from ...wire.rundir import AttemptDir, RunDir
from ..model.snapshot import Numbers
from ..present import total_progress
from .step_rate import epochs_done


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


def left_by_average(numbers: Numbers, printed: Mapping[str, Any], lasted: float, silent: float) -> float | None:
    """Seconds left at the average speed so far; None if the completed share is unknown.

    For a run not watched for long enough to know its speed: lines printed before that have no times.

    Args:
        printed: the newest line, by the names of a metrics record.
        lasted: seconds from the first step, where that is known, to the last sign of life.
        silent: how many of these have passed since the newest line, which told how many epochs were done.
    """
    done, epochs = epochs_done(printed, alone=numbers.step is None), numbers.epochs
    if done and epochs and not (numbers.step and numbers.steps) and silent < lasted:
        of_each = (lasted - silent) / done
        return max(0.0, of_each * (epochs - done) - min(silent, of_each))
    of_epochs = min(1.0, done / epochs) if done and epochs else total_progress(numbers)
    share = numbers.step / numbers.steps if numbers.step and numbers.steps else of_epochs
    return lasted * max(0.0, 1 / share - 1) if share and lasted > 0 else None
