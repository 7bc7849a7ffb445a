"""How fast a run goes and when it will be done: fed from its heartbeats and its points, by step or else by epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..model.snapshot import Numbers
from ..series.progress import Progress

NEWEST_RECORDS = 240


class Pace:
    """The progress of the newest attempt."""

    def __init__(self) -> None:
        self.progress = Progress()
        self._epochs = Progress()
        self._beaten: list[tuple[float, float, float]] = []
        self._by_epoch = False
        self.beaten = False
        """Whether heartbeats tell this attempt's steps."""

    def begin_attempt(self) -> None:
        """A new attempt: another pace, perhaps on another device."""
        self.progress.cut()
        self._epochs.cut()
        self._beaten.clear()
        self.beaten = False

    def note_beat(self, moment: float, step: float, slept_seconds: float) -> None:
        """A heartbeat's step; it counts after the points read in the same look, which may be older."""
        if not self.beaten:
            self.progress.cut()  # steps that were printed until now may be counted otherwise
        self.beaten = True
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

    def feed_epochs(self, records: Sequence[Mapping[str, Any]]) -> None:
        """What a program prints of its epochs while heartbeats or points count its steps, perhaps otherwise."""
        for record in records[-NEWEST_RECORDS:]:
            moment, done = record.get("time"), _epochs_done(record)
            if isinstance(moment, (int, float)) and done is not None:
                self._epochs.add(float(moment), done)

    def timed(self, numbers: Numbers, *, moving: bool) -> Numbers:
        """The numbers with rates and the time that is left; a run that stands still has neither."""
        if not moving:
            return replace(numbers, samples_per_second=None, steps_per_second=None)
        return replace(
            numbers,
            steps_per_second=numbers.steps_per_second or self.steps_per_second,
            eta_seconds=self.remaining_seconds(numbers),
            epoch_eta_seconds=self.epoch_remaining_seconds(numbers),
        )

    def remaining_seconds(self, numbers: Numbers) -> float | None:
        """Until the whole run is done; None until known."""
        if self._only_printed(numbers):
            return self._epochs.remaining_seconds(numbers.epochs)
        if self._by_epoch:
            return self.progress.remaining_seconds(numbers.epochs)
        return self.progress.remaining_seconds(_planned_steps(numbers))

    def epoch_remaining_seconds(self, numbers: Numbers) -> float | None:
        """Until the epoch being trained is done; None until known."""
        if self._only_printed(numbers) and self._epochs.step is not None:
            return self._epochs.remaining_seconds(math.floor(self._epochs.step) + 1)
        if self._by_epoch or numbers.step is None or numbers.epoch_step is None or numbers.epoch_steps is None:
            return None
        return self.progress.remaining_seconds(numbers.step + numbers.epoch_steps - numbers.epoch_step)

    @property
    def steps_per_second(self) -> float | None:
        """Of the training phases; None until known, and where only epochs are told."""
        return None if self._by_epoch else self.progress.steps_per_second

    def _only_printed(self, numbers: Numbers) -> bool:
        """Whether what is planned was printed alone, in epochs."""
        beat = numbers.beat
        return self._epochs.step is not None and numbers.steps is None and (beat is None or beat.epoch is None)

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


def _epochs_done(record: Mapping[str, Any]) -> float | None:
    """Epochs that are behind, the share of the one being trained among them; None where the record does not tell."""
    epoch, step, steps = (record.get(name) for name in ("epoch", "epoch_step", "epoch_steps"))
    if not isinstance(epoch, (int, float)):
        return None
    behind = float(epoch) - float(record.get("first_epoch", 1))
    if record.get("epoch_done"):
        return behind + 1.0
    if not isinstance(step, (int, float)) or not steps:
        return None
    return behind + min(1.0, float(step) / float(steps))


def _planned_steps(numbers: Numbers) -> float | None:
    if numbers.steps is not None:
        return float(numbers.steps)
    if numbers.epochs is not None and numbers.epoch_steps is not None:
        return numbers.epochs * numbers.epoch_steps
    return None
