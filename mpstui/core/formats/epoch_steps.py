"""Programs that count their steps anew in each epoch and do not say so: ``Epoch 2/5 step 3/20`` is the 23rd step.

Others print the step of the whole run beside the epoch in the very same words. Two things tell them apart: where the
step would stand in its epoch if it were one of the whole run, and whether it falls when the epoch rises.
"""

from __future__ import annotations

import math

from .points import NOWHERE, Counters, Number

_TOLERANCE = 0.02
"""Share of all steps by which a plan and what becomes of it may differ."""


class EpochSteps:
    """Watches the counters of one program's training lines."""

    def __init__(self) -> None:
        self.anew = False
        """Whether each epoch counts from its start."""
        self.length: Number | None = None
        """Steps of an epoch where no line tells them, as far as one was seen to go."""
        self._last = NOWHERE
        self._distance: Number = 1
        """Between the last two steps that were printed."""

    def forget_place(self) -> None:
        """Another launch of the program follows."""
        self._last = NOWHERE

    def watch(self, counters: Counters, lines: int = 1) -> bool:
        """Take in the counters of a training line; True when they are the first to show that epochs count anew.

        Args:
            lines: how many further it is than the line before, which has the same epoch if it is more than one.
        """
        step, epoch, before = counters.shown_step, counters.epoch, self._last
        if step is None or epoch is None or counters.epoch_steps or (counters.step is not None and counters.epoch_step):
            return False
        self._last = counters
        was, fell = self.anew, False
        if before.shown_step is not None and before.epoch is not None:
            fell = epoch > before.epoch and step < before.shown_step
            if fell and counters.steps is None:
                self.length = max(before.shown_step + self._distance - step, self.length or 1)
            if epoch == before.epoch and step > before.shown_step:
                self._distance = max(1, (step - before.shown_step) // lines)
        self.anew = was or fell or _is_out_of_place(counters)
        return self.anew and not was

    def read(self, counters: Counters) -> Counters:
        """The counters as they are meant."""
        if not self.anew or counters.step is None or counters.epoch is None or counters.epoch_step is not None:
            return counters
        return counters._replace(step=None, steps=None, epoch_step=counters.step, epoch_steps=counters.steps)


def _is_out_of_place(counters: Counters) -> bool:
    """Whether a step cannot be one of all steps in this epoch, whether epochs are counted from 0 or from 1."""
    step, steps, epoch, epochs = counters.step, counters.steps, counters.epoch, counters.epochs
    if step is None or epoch is None or not steps or not epochs or not math.isfinite(epoch):
        return False
    in_epoch, slack = steps / epochs, 1 + _TOLERANCE * steps
    return not (epoch - 1) * in_epoch - slack <= step <= (epoch + 1) * in_epoch + slack
