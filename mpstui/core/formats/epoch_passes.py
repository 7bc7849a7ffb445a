"""Counts that start again in each epoch without naming it: a bar, or lines such as ``step 3/20``.

Other lines name the epoch, before its first step or when it is over; if none do, the passes are counted.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from .points import NOWHERE, Counters, Number

_NEARLY_FULL = 0.9
"""A bar that is cleared need not be drawn to its end, and the last batches are seldom printed."""
_MAX_COUNTS = 64
_RISES_NEEDED = 2
_STEPS_WITHIN = 2
"""How many steps between two lines of an outer loop prove that it is one."""


@dataclass(slots=True)
class _Count:
    """One such count, known by where it is printed and by its total."""

    begun_below: Number | None
    """The epoch named by lines when it began; None if they name each epoch when it is over."""
    told: Number | None
    """The epoch named by lines when this pass began."""
    of_epoch: bool | None = None
    """True if it starts again with each epoch; None until something shows it."""
    number: int = 0
    """Index of the pass, from 0."""
    step: Number = 0
    newest: Number | None = None
    """The epoch that lines had named at ``step``."""
    distance: Number = 1
    """Difference between the last two steps of a pass."""
    length: Number | None = None
    """Steps of a pass, as far as one was seen to go, if no line gives a total."""
    announced: int = 0
    """How many epochs lines had named at ``step``."""
    share: float | None = None
    """The first fractional epoch (``'epoch': 0.25``) that a line gave beside it."""
    of_run: bool = False
    """True if such fractions moved on by an epoch or more while it rose."""
    passes: bool = False
    """True if it counts the passes of an outer loop: it rises by one while the steps within go on."""
    outer: bool = False
    """True if it rises more slowly than the epochs: it counts folds, clients or trials, each of which trains anew."""


class _Turned:
    """Watches for a count that stands still while its total rises: ``Batch 4/203700``, ``4/203800``."""

    def __init__(self) -> None:
        self._last: tuple[Number, Number] | None = None
        self._rises = 0

    def are_two(self, count: Number, total: Number) -> bool:
        """True if earlier lines show that a count and its total are an epoch and a step within it."""
        before, self._last = self._last, (count, total)
        if before is not None and before != self._last:
            self._rises = self._rises + 1 if count == before[0] and total > before[1] else 0
        return self._rises >= _RISES_NEEDED


class EpochPasses:
    """All such counts of one log."""

    def __init__(self) -> None:
        self._counts: dict[Hashable, _Count] = {}
        self._told = NOWHERE
        self._latest: _Count | None = None
        self._turned = _Turned()
        self._within = 0
        """Steps with a loss since the last line with nothing but a step."""

    def begin_run(self) -> None:
        """Begin another run in the same log."""
        self._told = NOWHERE
        for count in self._counts.values():
            count.number, count.told = 0, None

    @property
    def before(self) -> int:
        """How many passes came before the newest count's, if each epoch is one pass."""
        return self._latest.number if self._latest is not None and self._latest.of_epoch else 0

    @property
    def length(self) -> Number | None:
        """Steps of a pass, as far as one was seen to go."""
        return self._latest.length if self._latest is not None else None

    def tell(self, now: Counters, planned: Number | None, at: Counters | None) -> bool:
        """Take in an epoch named by a line; return True if it shows that the count at ``at`` is an epoch's.

        It is one if it has come to its end by then and more epochs are to follow.
        """
        count = self._latest
        if isinstance(now.epoch, float) and count is not None and not count.number:
            count.share = now.epoch if count.share is None else count.share
            count.of_run = count.of_run or now.epoch >= count.share + 1
        if not isinstance(now.epoch, int):
            return False
        self._told = now
        more = now.epochs is not None and now.epoch < now.epochs
        if not more or at is None or at.step is None or not at.steps or at.steps == planned:
            return False
        if count is None or count.of_epoch is not None or at.step < _NEARLY_FULL * at.steps:
            return False
        count.of_epoch = True
        return True

    def _counts_passes(self, alone: _Count, before: Number) -> bool:
        """True if a step on a line of its own counts an outer loop around the steps that have a loss."""
        if alone.step == before + 1 and self._within >= _STEPS_WITHIN and self._latest is not None:
            alone.passes, self._latest.begun_below, self._latest.told = True, before, before
        return alone.passes

    def as_meant(self, now: Counters, planned: Number | None, place: str, announced: int = 0) -> tuple[Counters, bool]:
        """Return the counters, with the steps as an epoch's if they are, and whether they can only begin a new run.

        Args:
            planned: steps of the whole run.
            place: keeps counts with one total apart: ``bar``, or the series of a loss; empty for lines without one.
            announced: how many epochs lines have named so far.
        """
        step, told = now.shown_step, self._told
        if step is None or now.epoch is not None:
            return now, False
        if now.shown_steps is not None and self._turned.are_two(step, now.shown_steps):
            return Counters(epoch=step, epoch_step=now.shown_steps), False
        count = self._counts.get((place, now.shown_steps))
        if count is None:
            if len(self._counts) >= _MAX_COUNTS:
                return now, False
            count = self._counts[place, now.shown_steps] = _Count(told.epoch, told.epoch, announced=announced)
            below = told.epoch is not None and now.shown_steps is not None and now.shown_steps != planned
            count.of_epoch = True if below or now.step is None else None
        before, count.step = count.step, step
        if place == "" and self._counts_passes(count, before):
            return Counters(epoch=step, epochs=now.shown_steps), False
        self._within = self._within + (step > before) if place else 0
        # Every epoch has steps of its own, so what rises more slowly than the epochs does not count those steps.
        count.outer = count.outer or (place == "" and 0 < step - before < announced - count.announced)
        count.announced = announced
        if count.outer:
            return NOWHERE, False
        self._latest = count
        filled = now.shown_steps is not None and before >= _NEARLY_FULL * now.shown_steps
        announced = told.epoch is not None and (count.told is None or told.epoch > count.told)
        goes_back = count.newest is not None and (told.epoch is None or told.epoch < count.newest)
        count.newest = told.epoch
        if step > before:
            count.distance = step - before
        elif step < before and not goes_back and not count.of_run and (announced or filled):
            count.length = max(before + count.distance - step, count.length or 1)
            count.of_epoch, count.told = True, told.epoch
            count.number += 1
        if step > before and now.step is not None and count.of_epoch and announced and not (count.number or filled):
            count.of_epoch = False  # it went on through the end of an epoch
        if not count.of_epoch:
            return now, False
        epoch = told.epoch
        if epoch is not None and count.begun_below is None and count.number > 0 and epoch == count.told:
            if told.epochs is not None and epoch >= told.epochs:
                return Counters(None, told.epochs, None, None, step, now.shown_steps), True
            epoch += 1  # lines name an epoch when it is over
        return Counters(epoch, told.epochs, None, None, step, now.shown_steps), False
