"""Whether a checkpoint is being written right now: by the trainer's own word, or because files there change."""

from __future__ import annotations

from ..wire.records import LaunchTemplate, Spec
from ..wire.rundir import RunDir
from . import checkpoints, progress
from .clock import Clock

LOOK_SECONDS = 0.5
QUIET_SECONDS = 5.0
"""A writer that pauses for this long is taken for done."""


class SavingWatch:
    """Asked several times a second, looks twice."""

    def __init__(self, run: RunDir, spec: Spec, template: LaunchTemplate, attempt: int, clock: Clock) -> None:
        self._run, self._spec, self._template, self._attempt = run, spec, template, attempt
        self._clock = clock
        self._figure = checkpoints.activity(template, run)
        age = clock.wall() - self._figure[1]
        # Without a look before it, a file written seconds ago counts as growing: a supervisor that takes over in the
        # middle of a stop must not kill a writer whose grace is over.
        self._changed_at = clock.monotonic() - age if 0.0 <= age < QUIET_SECONDS else None
        self._look_at = 0.0
        self._by_word = False

    def __call__(self) -> bool:
        now = self._clock.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._look(now)
        return self._by_word or (self._changed_at is not None and now - self._changed_at < QUIET_SECONDS)

    def _look(self, now: float) -> None:
        beat = progress.newest_beat(self._run, self._spec, self._attempt)
        self._by_word = beat is not None and beat.phase == "save"
        figure = checkpoints.activity(self._template, self._run)
        if figure != self._figure:
            self._figure, self._changed_at = figure, now
