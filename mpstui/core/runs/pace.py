"""How fast a run goes and when it will be done: fed from its heartbeats and its points, by step or else by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..series.progress import Progress
from .numbers import Numbers

NEWEST_RECORDS = 240


class Pace:
    """The progress of the newest attempt."""

    def __init__(self) -> None:
        self.progress = Progress()
        self._beaten: list[tuple[float, float, float]] = []
        self._by_epoch = False

    def begin_attempt(self) -> None:
        """A new attempt: another pace, perhaps on another device."""
        self.progress.cut()
        self._beaten.clear()

    def note_beat(self, moment: float, step: float, slept_seconds: float) -> None:
        """A heartbeat's step; it counts after the points read in the same look, which may be older."""
        self._beaten.append((moment, step, slept_seconds))

    def feed(self, records: Sequence[Mapping[str, Any]], attempt: int | None) -> None:
        """The points of one look.

        Args:
            attempt: points of other attempts are passed over; None takes all.
        """
        for record in records[-NEWEST_RECORDS:]:
            if attempt is None or record.get("attempt", attempt) in (attempt, 0):
                self._feed_one(record)
        for beat in self._beaten:
            self._advance(*beat)
        self._beaten.clear()

    def remaining_seconds(self, numbers: Numbers) -> float | None:
        """Until the whole run is done; None until known."""
        if self._by_epoch:
            return self.progress.remaining_seconds(numbers.epochs)
        return self.progress.remaining_seconds(_planned_steps(numbers))

    def epoch_remaining_seconds(self, numbers: Numbers) -> float | None:
        """Until the epoch being trained is done; None until known."""
        if self._by_epoch or numbers.step is None or numbers.epoch_step is None or numbers.epoch_steps is None:
            return None
        return self.progress.remaining_seconds(numbers.step + numbers.epoch_steps - numbers.epoch_step)

    @property
    def steps_per_second(self) -> float | None:
        """Of the training phases; None until known, and where only epochs are told."""
        return None if self._by_epoch else self.progress.steps_per_second

    def _feed_one(self, record: Mapping[str, Any]) -> None:
        moment, step, epoch = record.get("time"), record.get("step"), record.get("epoch")
        if not isinstance(moment, (int, float)):
            return
        if isinstance(step, (int, float)):
            self._advance(float(moment), float(step), 0.0)
        elif isinstance(epoch, (int, float)) and (self._by_epoch or self.progress.step is None):
            self._by_epoch = True
            self.progress.add(float(moment), float(epoch))

    def _advance(self, moment: float, step: float, slept_seconds: float) -> None:
        if self._by_epoch:
            self.progress.cut()
            self._by_epoch = False
        self.progress.add(moment, step, idle_seconds=slept_seconds)


def _planned_steps(numbers: Numbers) -> float | None:
    if numbers.steps is not None:
        return float(numbers.steps)
    if numbers.epochs is not None and numbers.epoch_steps is not None:
        return numbers.epochs * numbers.epoch_steps
    return None
