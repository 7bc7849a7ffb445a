"""The live warnings of one run, from the pictures that a screen draws of it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

from ..model.snapshot import RunSnapshot, SeriesView
from .live import LiveSeries, LiveWarning, Points, live_warnings

SAMPLE_SECONDS = 5.0
"""Memory and pace are noted this often: sixty notes are five minutes."""
MOST_SAMPLES = 360
_GRADIENT_NAMES = ("grad_norm", "gradient_norm", "grad/norm", "train/grad_norm", "gnorm")


class LiveWatch:
    """Remembers what snapshots do not: memory and step times of the last half hour. For one run at a time."""

    def __init__(self) -> None:
        self._of: tuple[str, int] | None = None
        self._memory: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)
        self._pace: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)
        self._limit: int | None = None
        self._noted = -math.inf
        self._found: tuple[LiveWarning, ...] = ()

    def look(self, snapshot: RunSnapshot) -> tuple[LiveWarning, ...]:
        """What goes wrong right now, the gravest first; nothing for a run that has ended or is paused."""
        if not snapshot.state.active or snapshot.is_frozen:
            return ()
        if self._of != (snapshot.run, snapshot.attempt):
            self._forget(snapshot)
        moment = snapshot.numbers.beat.time if snapshot.numbers.beat else snapshot.seen
        if moment - self._noted >= SAMPLE_SECONDS:
            self._noted = moment
            self._note(snapshot, moment)
            self._found = live_warnings(self._series(snapshot))
        return (*_gone(snapshot), *_log_end(snapshot), *self._found)

    def _forget(self, snapshot: RunSnapshot) -> None:
        self._of = snapshot.run, snapshot.attempt
        self._memory.clear()
        self._pace.clear()
        self._noted, self._found = -math.inf, ()

    def _note(self, snapshot: RunSnapshot, moment: float) -> None:
        memory = snapshot.numbers.memory
        used = memory.driver if memory.driver is not None else memory.allocated
        self._limit = memory.limit
        if used is not None:
            self._memory.append((moment, float(used)))
        if snapshot.numbers.steps_per_second:
            self._pace.append((moment, 1 / snapshot.numbers.steps_per_second))

    def _series(self, snapshot: RunSnapshot) -> LiveSeries:
        loss = list(_points(snapshot.train_loss))
        extremes = list(_extremes(snapshot.train_loss))
        if not snapshot.numbers.loss_is_finite and snapshot.numbers.step is not None:
            loss.append((float(snapshot.numbers.step), math.nan))
            extremes.append((math.nan, math.nan))
        return LiveSeries(
            loss=loss,
            loss_extremes=extremes,
            gradient_norm=_points(_gradient_norm(snapshot.series)),
            memory_bytes=tuple(self._memory),
            memory_limit_bytes=self._limit,
            step_seconds=tuple(self._pace),
        )


def _gone(snapshot: RunSnapshot) -> tuple[LiveWarning, ...]:
    if not snapshot.gone:
        return ()
    sentence = f"{snapshot.name} is gone (deleted, or moved away); what is shown was read before."
    return (LiveWarning("gone", sentence, snapshot.updated or snapshot.seen),)


def _log_end(snapshot: RunSnapshot) -> tuple[LiveWarning, ...]:
    exception = snapshot.log_exception
    if exception is None:
        return ()
    sentence = f"The log ends with {exception.rstrip('.')}."
    return (LiveWarning("log_exception", sentence, snapshot.updated or snapshot.seen),)


def _gradient_norm(series: Mapping[str, SeriesView]) -> SeriesView | None:
    return next((series[name] for name in _GRADIENT_NAMES if name in series), None)


def _extremes(view: SeriesView | None) -> Points:
    return tuple(zip(view.low, view.high, strict=False)) if view is not None and view.axis == "step" else ()


def _points(view: SeriesView | None) -> Points:
    """The columns of a curve as points; only over steps, since the warnings name one."""
    return tuple(zip(view.x, view.mean, strict=False)) if view is not None and view.axis == "step" else ()
