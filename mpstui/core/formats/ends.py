"""What was planned, and what is over: the epoch, all of the plan, the training as a whole."""

from __future__ import annotations

from dataclasses import replace

from .facts import Fact
from .loss_series import first_known, or_zero
from .names import words_of
from .notices import is_heading
from .points import NOWHERE, UNTOLD, Counters, LineReading, Number, Phase, Standing

_LATE = 0.8
"""From this share of an epoch on, an evaluation is the one behind it: the last batches are seldom printed."""


_MOST_RISES = 2
"""A number of steps that is corrected upwards more often was counted, not planned: ``NumTimesteps 2048``."""
_WHOLE = frozenset(("total", "max", "train", "training"))
"""In the name of steps: they are all of the training."""
_MOST_PLANS = 2
"""Numbers of epochs that one run is told; more are those of several data sets, of a network's parts, of a sweep."""


class PlannedTotals:
    """How much training banners and settings announce; a run that goes beyond it had another plan."""

    def __init__(self) -> None:
        self._planned = NOWHERE
        self._rises = 0
        self._epochs_told = set[Number]()
        self._told: list[LineReading] = []
        """The newest that told values beside a total."""
        self.steps_of_run: Number | None = None
        """What the newest line calls the total of steps."""
        self._of_training: tuple[Number, int] = (0, 0)
        """What the newest line calls the steps of the training, and how often that had moved on by then."""
        self._of_each = False
        """Whether the epochs among settings are those of each training in a round."""

    def begin_round(self) -> None:
        """Epochs are rounds of trainings: what settings have told of them is another plan."""
        self._planned = self._planned if self._of_each else self._planned._replace(epochs=None)
        self._of_each = True

    def begin_run(self) -> None:
        """Another run in the same log, which may have the same plan."""
        self._rises = min(self._rises, 1)
        self._epochs_told.clear()
        self.steps_of_run = None

    def take(self, counters: Counters, steps_name: str = "") -> bool:
        """What one line plans; the newest counts. False where its steps have risen too often to be planned."""
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
        """What a line that plans has told as a place, where its steps have risen too often to be planned, behind those
        before it with the same values; empty where it plans, or has told no values.

        Args:
            moves: how often the training was seen to move on before.
        """
        steps = plan.counters.steps
        if steps is not None and not _WHOLE.isdisjoint(words_of(plan.steps_name)):
            self._of_training = steps, moves
        elif steps is not None and moves == self._of_training[1] and steps < self._of_training[0]:
            plan = replace(plan, counters=plan.counters._replace(steps=None))  # of a round: ``iterations: 5000``
        counters = plan.counters._replace(epochs=None) if self._of_each else plan.counters
        if self.take(counters, plan.steps_name) or not plan.metrics:
            self._told = [*self._told, plan][-_MOST_RISES - 1 :] if plan.metrics else self._told
            return []
        alike, self._told = [one for one in self._told if one.metrics.keys() == plan.metrics.keys()], []
        return [replace(one, plan=False, counters=Counters(step=one.counters.steps)) for one in (*alike, plan)]

    @property
    def steps(self) -> Number | None:
        """Of the whole run."""
        return self._planned.steps

    def at(self, place: Counters) -> Counters:
        """The place with what is planned beside it; nothing is, where nothing has begun."""
        epochs, steps = self._planned.epochs, self._planned.steps
        if epochs is steps is None:
            return place
        if epochs is not None and (not place.positioned or or_zero(place.epoch) > epochs):
            epochs = None
        if steps is not None and (not place.positioned or self._rises > _MOST_RISES or or_zero(place.step) > steps):
            steps = None
        return place.or_else(Counters(epochs=epochs, steps=steps))


class Ends:
    """Knows it of the newest run in one log."""

    def __init__(self, *, from_zero: bool = False) -> None:
        self.epoch: Number | None = None
        """The epoch that is over, and no other has begun."""
        self.zeroth_epoch = from_zero
        """Whether the first epoch is called 0 (else it is 1: most count so, and the beginning may be cut)."""
        self._zeroth_evaluated = False
        """Whether only evaluations have told of an epoch 0: it may be the network as it began."""
        self._zeroth_step = False
        self._measured: Number | None = None
        """The newest epoch whose loss was told as a whole."""
        self._evaluates = False
        """Whether evaluations come behind the epochs of this run."""
        self._evaluated: Number | None = None
        """The epoch in which an evaluation has come, and no training since."""
        self._each_epoch = False
        """Whether the next epoch came after the evaluation before."""
        self._presumed = False
        """Whether the end of ``epoch`` follows from an evaluation, whatever steps it has."""
        self._told = UNTOLD
        self._device_stated = False
        self._faint = self._went_on = False

    def begin_run(self) -> None:
        """Another run in the same log; its device is known until it says another."""
        self.epoch = self._measured = self._evaluated = None
        self.zeroth_epoch = self._zeroth_evaluated = self._evaluates = self._each_epoch = False
        self._told = self._told._replace(done=False, failure=None)

    def learn(self, fact: Fact, current: Counters, at_end: bool | None) -> None:
        """A line has said something of the run as a whole.

        Args:
            at_end: `at_end` at this place.
        """
        vague = fact.device == "gpu" and self._told.device not in (None, "cpu")  # "using a single GPU", of cuda
        if fact.device and (fact.stated or not self._device_stated) and not vague:
            self._told = self._told._replace(device=fact.device)
            self._device_stated = self._device_stated or fact.stated
        elif fact.resumed or fact.went_on:
            self._told = self._told._replace(failure=None)
        elif fact.failure:
            self._told = self._told._replace(done=False, failure=fact.failure)
        elif fact.done and not (fact.faint and (current == NOWHERE or self._went_on or at_end is False)):
            self._told = self._told._replace(done=True, failure=None)
            self.epoch = current.epoch if isinstance(current.epoch, int) else self.epoch
            self._faint = fact.faint

    def standing(self, at_end: bool | None) -> Standing:
        """The run as a whole."""
        return self._told._replace(done=self._told.done or (at_end is True and not self._told.failure))

    def survive(self) -> None:
        """Something was trained or evaluated: what looked like a failure was none."""
        if self._told.failure:
            self._told = self._told._replace(failure=None)

    def learn_first_epoch(self, epoch: Number | None, reading: LineReading) -> None:
        """A reading was placed in ``epoch``."""
        if epoch is None:
            return
        if epoch < 1:
            only_evaluated = self._zeroth_evaluated or not self.zeroth_epoch
            self._zeroth_evaluated = only_evaluated and (reading.phase is Phase.EVAL or is_heading(reading))
            self.zeroth_epoch = True
        elif self._zeroth_evaluated and reading.loss is not None:
            self.zeroth_epoch = self._zeroth_evaluated = False

    def evaluate(self, epoch: Number | None, place: Counters, own: Counters) -> None:
        """An evaluation while training stood at ``place``; it tells ``own`` counters."""
        self._evaluates, self._evaluated = True, epoch
        of_epoch = own.epoch is not None and own.epoch == epoch and own.shown_step is None
        if place.epoch_step is not None and place.epoch_steps and place.epoch_step >= _LATE * place.epoch_steps:
            self.epoch = epoch
        elif place.shown_step is None:
            # One that comes before its epoch's loss may be of the network as it began.
            self.epoch = epoch if epoch is not None and epoch == self._measured else self.epoch
            self._measured = epoch
        elif place.epoch_steps is None and epoch is not None and (of_epoch or self._each_epoch):
            self.epoch, self._presumed = epoch, True

    def train(self, reading: LineReading, before: Counters) -> None:
        """A reading of training; ``before`` held until now."""
        now = reading.counters
        if self._evaluated is not None and now.positioned:
            self._each_epoch = now.epoch is not None and now.epoch > self._evaluated
            self._evaluated = None
        self._zeroth_step = self._zeroth_step or now.shown_step == 0
        if reading.loss is not None and now.or_else(before) != before:
            self._went_on = self._went_on or (self._told.done and self._faint)
            self._told = self._told._replace(done=False, failure=None)  # whatever was said
        if reading.loss is not None and now.shown_step is None:
            self._measured = first_known(now.epoch, self._measured)
        whole = now.epoch is not None and now.epoch == self._measured and now.shown_step is None
        last = now.epoch_steps and now.epoch_step == now.epoch_steps
        if reading.epoch_done or (reading.eval_metrics and (whole or last)):
            self.epoch = now.epoch
        elif now.shown_step is not None and now.shown_step != now.shown_steps:
            if now.epoch == self.epoch or (self._presumed and now.epoch is None):
                self.epoch = None  # it goes on after all: its end was counted otherwise
            self._presumed = False

    def at_end(self, now: Counters) -> bool | None:
        """Whether all that was planned is done; None where no plan is known."""
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
