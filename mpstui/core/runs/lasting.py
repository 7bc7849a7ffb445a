"""How long a run has trained, without the time between attempts and before the first step, and how long is left."""

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
    """Return the seconds between attempts up to the newest one, as far as their ends are on record.

    The time of rehearsals, which change nothing of a run, counts as idle too.
    """
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
    """Return when an attempt began to train, in Unix seconds: loading torch and data is left out of the epoch average.

    That is when the agent locked its rank, at the first step it saw; for a program without the agent, the launch.
    """
    try:
        return max(launch.time, attempt.rank_lock(0).stat().st_mtime)
    except OSError:
        return launch.time


def left_by_average(numbers: Numbers, printed: Mapping[str, Any], lasted: float, silent: float) -> float | None:
    """Return the seconds left at the average speed so far; None if the completed share is unknown.

    For a run that has not been watched long enough to know its speed: lines printed earlier have no times.

    Args:
        printed: the newest printed values, named as in a metrics record.
        lasted: seconds from the first step (from the launch if that is unknown) to the last sign of life.
        silent: how many of these seconds have passed since the newest line, which told how many epochs were done.
    """
    done, epochs = epochs_done(printed, alone=numbers.step is None), numbers.epochs
    if done and epochs and not (numbers.step and numbers.steps) and silent < lasted:
        of_each = (lasted - silent) / done
        return max(0.0, of_each * (epochs - done) - min(silent, of_each))
    of_epochs = min(1.0, done / epochs) if done and epochs else total_progress(numbers)
    share = numbers.step / numbers.steps if numbers.step and numbers.steps else of_epochs
    return lasted * max(0.0, 1 / share - 1) if share and lasted > 0 else None
