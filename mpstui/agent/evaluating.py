"""Tells since when a program evaluates: a network is in evaluation mode, or batches are fetched but not trained on."""

from __future__ import annotations

from typing import Optional

from .pace import Pace
from .passes import Passes

_IDLE_BATCHES = 3
"""So many batches without a backward pass between them are an evaluation."""
_AFTER_SECONDS = 1.0
_FEWEST_STEPS = 4
"""Between two evaluations: data that is read through for each step, such as a support set, is part of that step."""


class Evaluating:
    """Notes when evaluations begin, and tells the pace how long they took wherever their end can be seen."""

    def __init__(self, pace: Pace, passes: Passes) -> None:
        self._pace, self._passes = pace, passes
        self.since: Optional[float] = None
        """When the current evaluation began; None during training."""
        self._fetching_at = self._idle_at = 0.0
        self._idle = 0
        """Batches since the newest backward pass or step; the first of them was asked for at ``_idle_at``."""
        self._told_until: Optional[float] = None
        """The time up to which the pace knows of this evaluation. It is over then, unless another follows at once."""
        self._done_at_last = 0
        """Steps done when the newest evaluation ended that only its loader showed."""

    def is_long(self, now: float) -> bool:
        """Return whether the evaluation has taken long enough to be reported."""
        return self.since is not None and now - self.since > _AFTER_SECONDS

    def begins(self, now: float) -> bool:
        """Note that a network goes into evaluation mode; return whether an evaluation begins with that."""
        begins = self.since is None
        self.since = now if begins else self.since
        return begins

    def ends(self, now: float) -> None:
        """Note that a network goes into training mode: this ends an evaluation."""
        if self.since is not None:
            self._pace.came_back(now, self.since if self._told_until is None else self._told_until)
            self.since, self._told_until, self._idle = None, None, 0

    def fetches(self, now: float) -> None:
        """Note that a batch is asked for."""
        self._fetching_at = now

    def fetched(self, now: float, steps_done: int) -> None:
        """Note that a batch came. If the pass before was read through and none of its batches trained on, that was an
        evaluation, and it is over: another one or the training follows."""
        began, passed = self._fetching_at, self._passes.looked_through
        if 0 < passed <= self._idle:
            self._passed_by(began, steps_done)
        self._pace.waited += now - began
        self._idle_at = self._idle_at if self._idle else began
        self._idle += 1
        if self._idle >= _IDLE_BATCHES:
            self._passes.evaluated(_IDLE_BATCHES)
            self.since = now if self.since is None else self.since

    def _passed_by(self, now: float, steps_done: int) -> None:
        """Note the end of an evaluation that only its loader showed."""
        is_part = 0 < steps_done - self._done_at_last < _FEWEST_STEPS
        self._done_at_last = steps_done
        if not is_part:
            self.since = self._idle_at if self.since is None else min(self.since, self._idle_at)
            self._pace.came_back(now, self.since if self._told_until is None else self._told_until)
            self._told_until, self._idle = now, 0

    def trains(self, *, other_work: bool) -> None:
        """Note a backward pass or a step; ``other_work``: the program was seen to do something else before."""
        is_told = self._told_until is not None and self._idle < _IDLE_BATCHES
        if not is_told and (self.since is not None or other_work):
            self._pace.was_away = True
        self.since, self._told_until, self._idle = None, None, 0
