"""Steps that an epoch counts from its start, on lines that name both: ``epoch 1/5 step 3/20``.

Whether these are of the epoch or of the run shows only when the second epoch begins; counts on lines that name no epoch
are those of `epoch_passes`.
"""

from __future__ import annotations

import math

from .loss_series import or_zero
from .points import NOWHERE, Counters, Number

_TOLERANCE = 0.02
"""Share of all steps by which a plan and what becomes of it may differ."""


class EpochSteps:
    """Watches the counters of one program's training lines."""

    def __init__(self, steps: int | None = None, length: Number | None = None) -> None:
        """``steps``: of the whole run, where that is known from elsewhere; a step out of so many is one of these.

        ``length``: of an epoch, where an earlier log of the training has counted the steps of each from its start.
        """
        self._steps_of_run = steps
        self.anew = length is not None
        """Whether each epoch counts from its start."""
        self.through = False
        """Whether the steps were seen to go on from one epoch to the next."""
        self._goes_on = False
        """Whether that was by the usual distance: a plan that epochs do not divide proves nothing against it."""
        self.length = length
        """Steps of an epoch where no line tells them, as far as one was seen to go."""
        self.each = False
        """Whether that is certain: every step of it was printed."""
        self._fell = self.anew
        """Whether a step was seen to fall as an epoch began."""
        self._last = NOWHERE
        self._distance: Number = 1
        """Between the last two steps that were printed."""
        self._alone = False
        """Whether no other step of its epoch came before the last one."""
        self._open = False
        """Whether the newest steps may be those of the epoch or of the run."""
        self._adds_up = False
        """Whether counts without a name went on by an equal number with each epoch: 15, then 30."""
        self._beside = NOWHERE
        """Where a step of the epoch was last told beside one of the run."""

    @property
    def of_each(self) -> Number | None:
        """The length of an epoch, if steps were seen to begin anew with each."""
        return self.length if self._fell else None

    def forget_place(self) -> None:
        """Another launch of the program follows."""
        self._last = NOWHERE

    def watch(self, counters: Counters, lines: int = 1) -> None:
        """Take in the counters of a training line.

        Args:
            lines: how many lines after the one taken in before it stands; above 1, all between are of the same epoch.
        """
        if counters.step is not None and counters.epoch_steps:
            self._beside = counters
        step, epoch, before = counters.shown_step, counters.epoch, self._last
        if step is None or epoch is None or counters.epoch_steps or (counters.step is not None and counters.epoch_step):
            return
        self._last, fell, on, alone = counters, False, False, self._alone
        self._alone = epoch != before.epoch or (alone and step == before.shown_step)
        if before.shown_step is not None and before.epoch is not None:
            # A count of the run cannot stand still for a whole epoch; where it was printed twice at its end, it may.
            fell = epoch > before.epoch and (step < before.shown_step or (alone and step == before.shown_step))
            if fell and counters.steps is None:
                # What is printed is seldom every step, and the last one may stand between two of those.
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
            # Out of place among the steps of the run, whether epochs are counted from 0 or from 1.
            in_epoch, slack = steps / epochs, 1 + _TOLERANCE * steps
            self.anew = self.anew or not (epoch - 1) * in_epoch - slack <= step <= (epoch + 1) * in_epoch + slack
        self._fell = self._fell or fell
        self._goes_on = self._goes_on or on
        self.anew = self._fell or (self.anew and not self._goes_on)

    def read(self, counters: Counters) -> Counters:
        """The counters as they are meant.

        ``epoch 1/5 step 3/20`` counts the steps of an epoch more often than those of the run: so it is read until they
        go on into the second.
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
        """``50/50 (100%)`` below ``48/50 .. step: 248`` is step 250, and a ``1/50`` below that 251."""
        if not counters.steps or counters.steps != self._beside.epoch_steps or counters.epoch_step is not None:
            return counters
        now, length, before = or_zero(counters.step), or_zero(counters.steps), self._beside
        more = now - or_zero(before.epoch_step)
        step = or_zero(before.step) + (more if more >= 0 else more + length)
        return counters._replace(step=step, steps=None, epoch_step=now, epoch_steps=length)

    def counted_so(self, counters: Counters) -> Counters:
        """The counters of a line that does not say what it counts: steps, if those of the run are as many."""
        if self._steps_of_run is None or counters.epochs != self._steps_of_run:
            return counters
        return Counters(step=counters.epoch, steps=counters.epochs)

    def beyond_doubt(self, counters: Counters) -> Counters:
        """Without a total that may be that of an epoch or of the run, until a late step or the second epoch tells; with
        that of an epoch which was counted."""
        told = self.each and counters.epoch_steps is None and counters.epoch_step is not None
        if told and or_zero(counters.epoch_step) <= or_zero(self.length):
            return counters._replace(epoch_steps=self.length)
        return counters._replace(epoch_steps=None) if self._open and counters.epoch_steps else counters


def _may_be_of_run(now: Counters) -> bool:
    """Whether a step of the first epoch may be counted out of those of the run: epochs divide these."""
    epochs, steps = or_zero(now.epochs), or_zero(now.steps)
    return epochs > 1 and steps % epochs == 0 and or_zero(now.step) <= steps / epochs
