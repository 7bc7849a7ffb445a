"""How fast a training goes between two beats, and for how long it may be silent."""

from __future__ import annotations

from collections import deque
from typing import Optional

LEAST_PATIENCE_SECONDS = 60.0
_PATIENCE_STEPS = 50
_WINDOW_SECONDS = 10.0
"""Of training that a speed is told from: a beat alone may hold a single step, or three."""


class Pace:
    """An evaluation or a save is no slowness of the training: a stretch with one in it tells no speed."""

    def __init__(self) -> None:
        self.world_size = 1
        self.patience = LEAST_PATIENCE_SECONDS
        """Seconds of silence that are no reason to worry."""
        self.was_away = False
        """An evaluation or a save lies between the last beat of the training and the next."""
        self.steps_per_second: Optional[float] = None
        self.samples_per_second: Optional[float] = None
        """Of all processes."""
        self._at, self._step, self._samples = 0.0, 0, 0
        self._stretches: deque[tuple[float, int, int]] = deque()
        """Seconds, steps and samples between two beats."""
        self._cold = 2
        """So many stretches stand alone: the first one is still warming up."""

    def begin(self, now: float, step: int, warmed_up: float) -> None:
        """The first step was made; its start took ``warmed_up`` seconds, and the next may take as long."""
        self._at, self._step = now, step
        self.patience = max(LEAST_PATIENCE_SECONDS, 2 * warmed_up)

    def beat(self, now: float, step: int, samples: int, *, trained: bool) -> None:
        """So many steps and samples of this process are done."""
        elapsed, done, seen = now - self._at, step - self._step, samples - self._samples
        self._at, self._step, self._samples = now, step, samples
        if done > 0 and elapsed > 0.1:
            self.patience = max(LEAST_PATIENCE_SECONDS, _PATIENCE_STEPS * elapsed / done)
            if trained and not self.was_away:
                self._tell((elapsed, done, seen))
        self.was_away = False

    def _tell(self, newest: tuple[float, int, int]) -> None:
        if self._cold:
            self._cold -= 1
            self._stretches.clear()
        self._stretches.append(newest)
        while sum(one[0] for one in self._stretches) - self._stretches[0][0] >= _WINDOW_SECONDS:
            self._stretches.popleft()
        elapsed, done, seen = (sum(column) for column in zip(*self._stretches))  # noqa: B905
        self.steps_per_second = done / elapsed
        self.samples_per_second = self.world_size * seen / elapsed if seen else None
