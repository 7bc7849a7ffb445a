"""Steps counted from the start of each epoch, on lines that name both: ``epoch 1/5 step 3/20``.

Whether they are the epoch's or the run's shows only when the second epoch begins. For counts on lines that name no
epoch, see `epoch_passes`.
"""

from __future__ import annotations

import math
from dataclasses import replace

from .loss_series import or_zero
from .notices import is_heading
from .points import NOWHERE, Counters, LineReading, Number

_TOLERANCE = 0.02
"""The share of all steps by which a plan and its outcome may differ."""


class EpochSteps:
    """Watches the counters of one program's training lines."""

    def __init__(self, steps: int | None = None, length: Number | None = None) -> None:
        """Take what is known from elsewhere.

        Args:
            steps: of the whole run; a step out of as many is the run's.
            length: steps of an epoch, if an earlier log of the training counted them from each epoch's start.
        """
        self._steps_of_run = steps
        self.anew = length is not None
        """True if each epoch counts from its start."""
        self.through = False
        """True if steps were seen to go on from one epoch to the next."""
        self._goes_on = False
        """True if they went on by the usual distance; then a total that does not fit the epochs proves nothing."""
        self.length = length
        """Steps of an epoch, as far as one was seen to go, if no line gives a total."""
        self.each = False
        """True if ``length`` is certain: every step of the epoch was printed."""
        self._fell = self.anew
        """True if a step was seen to fall as an epoch began."""
        self._last = NOWHERE
        self._distance: Number = 1
        """Difference between the last two steps that were printed."""
        self._alone = False
        """True if the last step is the first one printed in its epoch."""
        self._open = False
        """True if the newest steps may be the epoch's or the run's."""
        self._adds_up = False
        """True if unnamed counts rose by the same number with each epoch: 15, then 30."""
        self._beside = NOWHERE
        """The last counters that gave a step of the epoch beside one of the run."""

    @property
    def of_each(self) -> Number | None:
        """The length of an epoch, if steps were seen to start again with each."""
        return self.length if self._fell else None

    def forget_place(self) -> None:
        """Forget the last step, since another launch of the program follows."""
        self._last = NOWHERE

    def watch(self, counters: Counters, lines: int = 1) -> None:
        """Take in the counters of a training line.

        Args:
            lines: how many lines it is after the last one taken in; if above 1, all those between are of one epoch.
        """
        if counters.step is not None and counters.epoch_steps:
            self._beside = counters
        step, epoch, before = counters.shown_step, counters.epoch, self._last
        if step is None or epoch is None or counters.epoch_steps or (counters.step is not None and counters.epoch_step):
            return
        self._last, fell, on, alone = counters, False, False, self._alone
        self._alone = epoch != before.epoch or (alone and step == before.shown_step)
        if before.shown_step is not None and before.epoch is not None:
            # A step of the run cannot stay the same for a whole epoch, unless the last one was printed twice.
            fell = epoch > before.epoch and (step < before.shown_step or (alone and step == before.shown_step))
            if fell and counters.steps is None:
                # Not every step is printed as a rule, and the last one may lie between two that would be.
                self.length = max(before.shown_step + self._distance - step, before.shown_step, self.length or 1)
                self.each = not alone and self._distance == 1 and step in (0, 1)
            self.through = self.through or (epoch > before.epoch and step > before.shown_step)
            more = step - before.shown_step
            goes_on = epoch == before.epoch + 1 and more > 0 and before.shown_step % more == 0
            self._adds_up = goes_on or (self._adds_up and epoch == before.epoch and not more)
            on = not alone and epoch == before.epoch + 1 and step == before.shown_step + self._distance
            if epoch == before.epoch and step > before.shown_step:
                self._distance = max(1, (step - before.shown_step) // lines)
        steps, epochs = counters.steps, counters.epochs
        if steps and epochs and counters.step is not None and math.isfinite(epoch):
            # Far from where a step of the run would be, whether epochs are counted from 0 or from 1.
            in_epoch, slack = steps / epochs, 1 + _TOLERANCE * steps
            self.anew = self.anew or not (epoch - 1) * in_epoch - slack <= step <= (epoch + 1) * in_epoch + slack
        self._fell = self._fell or fell
        self._goes_on = self._goes_on or on
        self.anew = self._fell or (self.anew and not self._goes_on)

    def read(self, counters: Counters) -> Counters:
        """Return the counters as they are meant.

        The steps of ``epoch 1/5 step 3/20`` are more often the epoch's than the run's, and are read as such until they
        go on into the second epoch.
        """
        if self._adds_up and counters.step is counters.epoch_steps is None and counters.epoch_step:
            return counters._replace(step=counters.epoch_step, epoch_step=None)  # ``Epoch [1/6] (30)``
        if counters.step is None or counters.epoch is None or counters.epoch_step is not None:
            return counters
        first = counters.epoch in (0, 1) or not counters.epochs
        likely = counters.steps and isinstance(counters.epoch, int) and first
        of_run = self._steps_of_run is not None and counters.steps == self._steps_of_run
        if not self.anew and (self.through or of_run or not likely):
            return counters
        self._open = not self.anew and _may_be_of_run(counters)
        return counters._replace(step=None, steps=None, epoch_step=counters.step, epoch_steps=counters.steps)

    def beside_the_run(self, counters: Counters) -> Counters:
        """Add the run's step: ``50/50 (100%)`` below ``48/50 .. step: 248`` is step 250, the next ``1/50`` is 251."""
        if not counters.steps or counters.steps != self._beside.epoch_steps or counters.epoch_step is not None:
            return counters
        now, length, before = or_zero(counters.step), or_zero(counters.steps), self._beside
        more = now - or_zero(before.epoch_step)
        step = or_zero(before.step) + (more if more >= 0 else more + length)
        return counters._replace(step=step, steps=None, epoch_step=now, epoch_steps=length)

    def counted_so(self, reading: LineReading) -> LineReading:
        """Return the reading of a line that does not say what it counts: steps, if its total is that of the run.

        Alone on its line it is a place in an evaluation (``12/60``, images) where lines that name their epochs have
        another total of them, or none.
        """
        counters, named = reading.counters, self._last
        if self._steps_of_run is not None and counters.epochs == self._steps_of_run:
            return replace(reading, counters=Counters(step=counters.epoch, steps=counters.epochs))
        if is_heading(reading) and named.epoch is not None and named.epochs != counters.epochs:
            return replace(reading, counters=NOWHERE)
        return reading

    def beyond_doubt(self, counters: Counters) -> Counters:
        """Return the counters with the epoch's length if it was counted, and without a total of uncertain meaning.

        Such a total may be the epoch's or the run's until a late step or the second epoch decides.
        """
        told = self.each and counters.epoch_steps is None and counters.epoch_step is not None
        if told and or_zero(counters.epoch_step) <= or_zero(self.length):
            return counters._replace(epoch_steps=self.length)
        return counters._replace(epoch_steps=None) if self._open and counters.epoch_steps else counters


def _may_be_of_run(now: Counters) -> bool:
    """True if a step of the first epoch may be one out of the run's: their total is a multiple of the epochs."""
    epochs, steps = or_zero(now.epochs), or_zero(now.steps)
    return epochs > 1 and steps % epochs == 0 and or_zero(now.step) <= steps / epochs
