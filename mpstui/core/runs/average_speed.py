"""How long a run still takes at its average speed so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.snapshot import Numbers
from ..present import total_progress
from .step_rate import epochs_done


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
