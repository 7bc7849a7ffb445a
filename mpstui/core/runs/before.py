"""What an earlier attempt told of a run whose newest one has told nothing: it is in its set-up, or ended there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ...wire import storage
from ...wire.records import LaunchRecord
from ...wire.rundir import AttemptDir, RunDir
from ..follow import Budget
from ..model.snapshot import Numbers
from .external import ExternalMetrics
from .files import PointReader
from .follower import RunFollower
from .local_machine import LocalMachine
from .planned import planned_totals

_TAKEN = ("epoch", "step", "epoch_step", "epoch_steps", "first_epoch", "epoch_done", "loss")
_SECONDS = 0.05
"""How long an output may be read whose end says nothing."""


class EarlierAttempt(RunFollower):
    """One attempt that is over, read for its last numbers alone."""

    def __init__(self, folder: AttemptDir, machine: LocalMachine, points: PointReader) -> None:
        super().__init__(machine)
        self.folder, self.points = folder, points

    def numbers(self, heartbeat: Path | None, pattern: str | None) -> Numbers:
        """Its last ones; nothing of a rehearsal, which is none of the run's attempts."""
        launch = storage.read_or_none(LaunchRecord, self.folder.launch)
        if launch is None or launch.rehearsal is not None:
            return Numbers()
        self._asked, self._resumed = planned_totals(launch), launch.checkpoint is not None
        self.heartbeats.begin_attempt(self.folder)
        self.heartbeats.follow(heartbeat, launch.time)
        self.heartbeats.read()
        self.external = external = ExternalMetrics(self.folder.output, self.machine.clock, pattern)
        external.poll()
        external.preview()
        if not external.newest:
            external.read(Budget(_SECONDS))
        external.finish()
        return self._numbers(self.folder.number, moving=False)


class Before:
    """What the attempts before the newest one told last; they are read once, and only if they are needed."""

    def __init__(self, run: RunDir, machine: LocalMachine, points: PointReader) -> None:
        """``points``: those of all attempts."""
        self._run, self._machine, self._points = run, machine, points
        self._found: tuple[int, Numbers, int] = (0, Numbers(), 0)

    def behind(self, numbers: Numbers, attempt: int, heartbeat: Path | None, pattern: str | None) -> Numbers:
        """``numbers`` if the attempt has told any, else with the position and the loss that were told before it.

        A loss that was not finite stays with the attempt that ended with it.

        Args:
            heartbeat: the file of the program's own, which every attempt writes.
            pattern: how the profile names the numbers in the output.
        """
        if _tells(numbers):
            return numbers
        if self._found[0] != attempt:
            self._found = attempt, *self._newest_before(attempt, heartbeat, pattern)
        _, known, of = self._found
        if not of:
            return numbers
        found: dict[str, Any] = {name: getattr(known, name) for name in _TAKEN}
        for count, total in (("epoch", "epochs"), ("step", "steps")):
            planned = getattr(numbers, total)
            fits = planned is not None and planned >= (found[count] or 0)
            found[total] = planned if fits else getattr(known, total)
        for name in ("metrics", "told_by"):
            found[name] = {**getattr(known, name), **getattr(numbers, name)}
        return replace(numbers, **found, lr=known.lr if numbers.lr is None else numbers.lr, of_attempt=of)

    def _newest_before(self, attempt: int, heartbeat: Path | None, pattern: str | None) -> tuple[Numbers, int]:
        for number in sorted((one for one in self._run.attempt_numbers() if one < attempt), reverse=True):
            earlier = EarlierAttempt(self._run.attempt(number), self._machine, self._points)
            found = earlier.numbers(heartbeat, pattern)
            if _tells(found):
                return found, number
        return Numbers(), 0


def _tells(numbers: Numbers) -> bool:
    return (numbers.epoch, numbers.step, numbers.loss) != (None, None, None) or not numbers.loss_is_finite
