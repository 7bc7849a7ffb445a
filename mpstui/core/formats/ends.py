"""What was planned and what is over: the epoch, the whole plan, the training."""

from __future__ import annotations

from dataclasses import replace

from .facts import Fact, device_of_failure
from .loss_series import first_known, or_zero
from .names import words_of
from .notices import is_heading
from .points import NOWHERE, UNTOLD, Counters, LineReading, Number, Phase, Standing

_LATE = 0.8
"""From this share of an epoch on, an evaluation counts as the one at its end: the last batches are seldom printed."""


_MOST_RISES = 2
"""A number of steps that grows more often was counted, not planned: ``NumTimesteps 2048``."""
_WHOLE = frozenset(("total", "max", "train", "training"))
"""Words in a name of steps that mean the whole training."""
_MOST_PLANS = 2
"""Totals of epochs that one run may announce; more are those of several data sets, parts of a network, a sweep."""


class PlannedTotals:
    """The totals that banners and settings announce; a run that goes beyond them had another plan."""

    def __init__(self) -> None:
        self._planned = NOWHERE
        self._rises = 0
        self._epochs_told = set[Number]()
        self._told: list[LineReading] = []
        """The newest plans that came with values."""
        self.steps_of_run: Number | None = None
        """The newest number of steps that a line called "total"."""
        self._of_training: tuple[Number, int] = (0, 0)
        """The newest number of steps said to be the training's, and how often training had moved on by then."""
        self._of_each = False
        """True if the epochs among settings are those of each training in a round."""

    def begin_round(self) -> None:
        """Count epochs as rounds of trainings from now on: those among settings belong to another plan."""
        self._planned = self._planned if self._of_each else self._planned._replace(epochs=None)
        self._of_each = True

    def begin_run(self) -> None:
        """Begin another run in the same log, which may have the same plan."""
        self._rises = min(self._rises, 1)
        self._epochs_told.clear()
        self.steps_of_run = None

    def take(self, counters: Counters, steps_name: str = "") -> bool:
        """Take in what a line plans; the newest counts. Return False if its steps have risen too often for a plan."""
        is_total = bool(counters.steps) and "total" in words_of(steps_name)
        self.steps_of_run = counters.steps if is_total else self.steps_of_run
        steps, before = first_known(counters.steps, self.steps), or_zero(self.steps)
        self._rises = 0 if or_zero(steps) < before else self._rises + (or_zero(steps) > before)
        epochs = first_known(counters.epochs, self._planned.epochs)
        if counters.epochs is not None and len(self._epochs_told) <= _MOST_PLANS:
            self._epochs_told.add(counters.epochs)
        if len(self._epochs_told) > _MOST_PLANS:
            epochs = None
        self._planned = Counters(epochs=epochs, steps=steps)
        return counters.steps is None or self._rises <= _MOST_RISES

    def as_counted(self, plan: LineReading, moves: int) -> list[LineReading]:
        """Return a plan as a position if its steps have risen too often for one, after earlier plans with its metrics.

        Empty if the line does state a plan, or has no values.

        Args:
            moves: how often training was seen to move on so far.
        """
        steps = plan.counters.steps
        if steps is not None and not _WHOLE.isdisjoint(words_of(plan.steps_name)):
            self._of_training = steps, moves
        elif steps is not None and moves == self._of_training[1] and steps < self._of_training[0]:
            plan = replace(plan, counters=plan.counters._replace(steps=None))  # of a round: ``iterations: 5000``
        if plan.of_trainings:
            self.begin_round()
        elif self._of_each:
            plan = replace(plan, counters=plan.counters._replace(epochs=None))
        counters = plan.counters
        if self.take(counters, plan.steps_name) or not plan.metrics:
            self._told = [*self._told, plan][-_MOST_RISES - 1 :] if plan.metrics else self._told
            return []
        alike, self._told = [one for one in self._told if one.metrics.keys() == plan.metrics.keys()], []
        return [replace(one, plan=False, counters=Counters(step=one.counters.steps)) for one in (*alike, plan)]

    @property
    def steps(self) -> Number | None:
        """Planned steps of the whole run."""
        return self._planned.steps

    def at(self, place: Counters) -> Counters:
        """Return a position with the planned totals added; there are none before the run has begun."""
        epochs, steps = self._planned.epochs, self._planned.steps
        if epochs is steps is None:
            return place
        if epochs is not None and (not place.positioned or or_zero(place.epoch) > epochs):
            epochs = None
        if steps is not None and (not place.positioned or self._rises > _MOST_RISES or or_zero(place.step) > steps):
            steps = None
        return place.or_else(Counters(epochs=epochs, steps=steps))


class Ends:
    """Knows what is over in the newest run of one log."""

    def __init__(self, *, from_zero: bool = False) -> None:
        self.epoch: Number | None = None
        """The epoch that is over, as long as no other has begun."""
        self.zeroth_epoch = from_zero
        """True if the first epoch is called 0; else 1 is assumed (the usual case; the log's start may be missing)."""
        self._zeroth_evaluated = False
        """True if only evaluations have named an epoch 0, which may mean the untrained network."""
        self._zeroth_step = False
        self._measured: Number | None = None
        """The newest epoch with a loss of the whole epoch."""
        self._evaluates = False
        """True if evaluations follow the epochs of this run."""
        self._evaluated: Number | None = None
        """The epoch of the last evaluation, if no training has followed yet."""
        self._each_epoch = False
        """True if a new epoch followed the previous evaluation."""
        self._presumed = False
        """True if only an evaluation shows that ``epoch`` is over, whatever its steps."""
        self._told = UNTOLD
        self._device_stated = False
        self._faint = self._went_on = False

    def begin_run(self) -> None:
        """Begin another run in the same log; its device is the last one's until it names another."""
        self.epoch = self._measured = self._evaluated = None
        self.zeroth_epoch = self._zeroth_evaluated = self._evaluates = self._each_epoch = False
        self._told = self._told._replace(done=False, failure=None)

    def learn(self, fact: Fact, current: Counters, at_end: bool | None) -> None:
        """Take in what a line says about the run as a whole.

        Args:
            at_end: what `at_end` returns at this position.
        """
        vague = fact.device == "gpu" and self._told.device not in (None, "cpu")  # "using a single GPU", after "cuda"
        if fact.device and (fact.stated or not self._device_stated) and not vague:
            self._told = self._told._replace(device=fact.device)
            self._device_stated = self._device_stated or fact.stated
        elif fact.resumed or fact.went_on:
            self._told = self._told._replace(failure=None)
        elif fact.failure:
            device = self._told.device or device_of_failure(fact.failure)
            self._told = self._told._replace(done=False, failure=fact.failure, device=device)
        elif fact.done and not (fact.faint and (current == NOWHERE or self._went_on or at_end is False)):
            self._told = self._told._replace(done=True, failure=None)
            self.epoch = current.epoch if isinstance(current.epoch, int) else self.epoch
            self._faint = fact.faint

    def standing(self, at_end: bool | None) -> Standing:
        """Return the state of the run as a whole."""
        return self._told._replace(done=self._told.done or (at_end is True and not self._told.failure))

    def survive(self) -> None:
        """Clear a failure, since training or an evaluation has gone on after it."""
        if self._told.failure:
            self._told = self._told._replace(failure=None)

    def learn_first_epoch(self, epoch: Number | None, reading: LineReading) -> None:
        """Learn from a reading placed in ``epoch`` whether epochs are counted from 0."""
        if epoch is None:
            return
        if epoch < 1:
            only_evaluated = self._zeroth_evaluated or not self.zeroth_epoch
            self._zeroth_evaluated = only_evaluated and (reading.phase is Phase.EVAL or is_heading(reading))
            self.zeroth_epoch = True
        elif self._zeroth_evaluated and reading.loss is not None:
            self.zeroth_epoch = self._zeroth_evaluated = False

    def evaluate(self, epoch: Number | None, place: Counters, own: Counters) -> None:
        """Take in an evaluation made while training stood at ``place``; ``own`` are its own counters."""
        self._evaluates, self._evaluated = True, epoch
        of_epoch = own.epoch is not None and own.epoch == epoch and own.shown_step is None
        if place.epoch_step is not None and place.epoch_steps and place.epoch_step >= _LATE * place.epoch_steps:
            self.epoch = epoch
        elif place.shown_step is None:
            # One that comes before its epoch's loss may be of the untrained network.
            self.epoch = epoch if epoch is not None and epoch == self._measured else self.epoch
            self._measured = epoch
        elif place.epoch_steps is None and epoch is not None and (of_epoch or self._each_epoch):
            self.epoch, self._presumed = epoch, True

    def train(self, reading: LineReading, before: Counters) -> None:
        """Take in a reading of training; ``before`` are the counters until now."""
        now = reading.counters
        if self._evaluated is not None and now.positioned:
            self._each_epoch = now.epoch is not None and now.epoch > self._evaluated
            self._evaluated = None
        self._zeroth_step = self._zeroth_step or now.shown_step == 0
        if reading.loss is not None and now.or_else(before) != before:
            self._went_on = self._went_on or (self._told.done and self._faint)
            self._told = self._told._replace(done=False, failure=None)  # whatever was said before
        if reading.loss is not None and now.shown_step is None:
            self._measured = first_known(now.epoch, self._measured)
        whole = now.epoch is not None and now.epoch == self._measured and now.shown_step is None
        last = now.epoch_steps and now.epoch_step == now.epoch_steps
        if reading.epoch_done or (reading.eval_metrics and (whole or last)):
            self.epoch = now.epoch
        elif now.shown_step is not None and now.shown_step != now.shown_steps:
            if now.epoch == self.epoch or (self._presumed and now.epoch is None):
                self.epoch = None  # it goes on after all, so it was wrongly taken for over
            self._presumed = False

    def at_end(self, now: Counters) -> bool | None:
        """True if all that was planned is done; None if no plan is known."""
        if now.epochs and now.epoch is not None:
            if now.epoch < now.epochs - (self.zeroth_epoch and isinstance(now.epoch, int)):
                return False
            if not isinstance(now.epoch, int) or now.epoch in (self.epoch, self._measured):
                return True
            full = (
                now.epoch_step is not None and now.epoch_steps and now.epoch_step >= now.epoch_steps - self._zeroth_step
            )
            return bool(full) and not self._evaluates
        return None if now.step is None or not now.steps or now.step > now.steps else now.step == now.steps
