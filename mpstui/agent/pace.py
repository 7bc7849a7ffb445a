"""How fast a training runs between two beats, and how long it may be silent."""

from __future__ import annotations

from collections import deque
from typing import Optional

LEAST_PATIENCE_SECONDS = 60.0
_PATIENCE_STEPS = 50
_WINDOW_SECONDS = 10.0
"""Seconds of training from which a speed is computed: from one beat to the next there may be one step, or three."""
_LEAST_PAUSE_SECONDS, _PAUSE_TIMES = 0.5, 5.0
"""The shortest gap between two steps that may be a pause, in seconds and in usual steps: the program may evaluate
without ``eval`` or a loader, or draw a figure."""
_STEPS_BETWEEN_PAUSES = 16
"""Gaps that recur after fewer steps are part of the loop, as in short epochs that collect garbage or resample."""


class Pace:
    """Measures speed without evaluations and saves: their time is subtracted if their end is known; otherwise the
    stretch that contains them gives no speed."""

    def __init__(self) -> None:
        self.world_size = 1
        self.patience = LEAST_PATIENCE_SECONDS
        """Seconds of silence that are no cause for concern."""
        self.was_away = False
        """Whether an evaluation or a save of unknown length has come since the last beat."""
        self.steps_per_second: Optional[float] = None
        self.samples_per_second: Optional[float] = None
        """Over all processes."""
        self._at, self._step, self._samples = 0.0, 0, 0
        self._stretches: deque[tuple[float, int, int]] = deque()
        """Seconds, steps and samples between two beats."""
        self.waited = 0.0
        """Seconds spent waiting for a data loader since the newest step: slow data does make a slow training."""
        self._stepped_at = 0.0
        self._away = self._away_since_step = 0.0
        """Seconds of evaluation since the last beat, and since the newest step."""
        self._seen = 0
        """Steps since the last beat."""
        self._long: list[float] = []
        """Seconds of each gap between two steps, since the last beat, that may contain a pause."""
        self._since_pause = _STEPS_BETWEEN_PAUSES
        self._usual: deque[float] = deque(maxlen=9)
        """Seconds per step between the latest beats."""
        self._cold = 2
        """How many more stretches are not averaged with earlier ones: the first still includes warming up."""

    def begin(self, now: float, step: int, warmed_up: float) -> None:
        """Note that training begins, ``warmed_up`` seconds after the start: the next step may take as long."""
        self._at, self._step, self._stepped_at = now, step, now
        self._long.clear()
        self.patience = max(LEAST_PATIENCE_SECONDS, 2 * warmed_up)

    def stepped(self, now: float) -> None:
        """Note a step of an optimizer."""
        gap, self._stepped_at = now - self._stepped_at - self._away_since_step, now
        self._seen += 1
        self._away_since_step = 0.0
        if gap > _LEAST_PAUSE_SECONDS:
            self._long.append(max(0.0, gap - self.waited))
        self.waited = 0.0

    def came_back(self, now: float, left_at: float) -> None:
        """Note the end of an evaluation that began at ``left_at``; waiting for its loader does not count as waiting."""
        self._away += now - max(left_at, self._at)
        self._away_since_step += now - max(left_at, self._stepped_at)
        self.waited = 0.0

    def beat(self, now: float, step: int, samples: int, *, trained: bool) -> None:
        """Update speed and patience from the steps and samples that this process has done."""
        if trained and step == self._step and not (self.was_away or self._away):
            return  # in the middle of a step, as between the optimizers of a GAN: the stretch goes on
        elapsed, done, seen = now - self._at, step - self._step, samples - self._samples
        self._at, self._step, self._samples = now, step, samples
        # The beat of a save or an evaluation ends with the newest step: an evaluation since then is the next beat's.
        behind = self._away_since_step if now <= self._stepped_at else 0.0
        if done > 0 and elapsed > 0.1:
            self.patience = max(LEAST_PATIENCE_SECONDS, _PATIENCE_STEPS * elapsed / done)
            if trained and not self.was_away:
                worked = elapsed - (self._away - behind)
                self._tell((worked - self._paused(worked, done), done, seen))
        self.was_away, self._away = False, behind
        self._long.clear()
        self._seen = 0

    def _paused(self, elapsed: float, done: int) -> float:
        """Return the seconds of pauses in a stretch; if all steps are that slow, it is the training itself."""
        if done != self._seen:  # a framework counts something else
            return 0.0
        others = done - len(self._long)
        if others > 0:
            usual = max(0.0, elapsed - sum(self._long)) / others
        else:
            usual = sorted(self._usual)[len(self._usual) // 2] if self._usual else elapsed / done
        self._usual.append(usual if others > 0 else elapsed / done)
        pauses = [gap - usual for gap in self._long if gap > _PAUSE_TIMES * usual > 0]
        steps = self._since_pause + done
        self._since_pause = 0 if pauses else steps
        return sum(pauses) if steps >= _STEPS_BETWEEN_PAUSES * len(pauses) else 0.0

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
