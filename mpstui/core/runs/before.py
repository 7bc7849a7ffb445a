"""Fall back on what earlier attempts reported when the newest attempt has reported or measured nothing.

That attempt is still setting up, ended during setup, or had nothing left to do.
"""

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
"""How long to read an output if there are no numbers at its end."""


class EarlierAttempt(RunFollower):
    """A finished attempt, of which only the last numbers are read."""

    def __init__(self, folder: AttemptDir, machine: LocalMachine, points: PointReader) -> None:
        super().__init__(machine)
        self.folder, self.points = folder, points

    def numbers(self, heartbeat: Path | None, pattern: str | None) -> Numbers:
        """Return its last numbers; none for a rehearsal, which does not count as an attempt of the run."""
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
    """The last numbers of the attempts before the newest one, read once and only if needed."""

    def __init__(self, run: RunDir, machine: LocalMachine, points: PointReader) -> None:
        """``points``: reads the points of all attempts."""
        self._run, self._machine, self._points = run, machine, points
        self._found: tuple[int, Numbers, int] = (0, Numbers(), 0)

    def behind(
        self, numbers: Numbers, attempt: int, heartbeat: Path | None, pattern: str | None, *, over: bool
    ) -> Numbers:
        """Return ``numbers``, completed from earlier attempts if this attempt has measured nothing.

        The position is taken over too if the attempt has reported none. A non-finite loss is not taken over, since it
        belongs to the attempt that ended with it, nor is anything measured beyond the attempt's own position.

        Args:
            heartbeat: the program's own heartbeat file, which every attempt writes.
            pattern: the profile's pattern for numbers in the output.
            over: the attempt has ended and will no longer report its device.
        """
        if _measured(numbers):
            return numbers
        if self._found[0] != attempt:
            self._found = attempt, *self._newest_before(attempt, heartbeat, pattern)
        _, known, of = self._found
        if not of:
            return numbers
        if not over:
            known = replace(known, device=numbers.device)
        if _tells(numbers):
            return _with_measured(numbers, known)
        found: dict[str, Any] = {name: getattr(known, name) for name in _TAKEN}
        for count, total in (("epoch", "epochs"), ("step", "steps")):
            planned = getattr(numbers, total)
            fits = planned is not None and planned >= (found[count] or 0)
            found[total] = planned if fits else getattr(known, total)
        for name in ("metrics", "told_by"):
            found[name] = {**getattr(known, name), **getattr(numbers, name)}
        found["device"] = numbers.device if numbers.device.type is not None else known.device
        return replace(numbers, **found, lr=known.lr if numbers.lr is None else numbers.lr, of_attempt=of)

    def _newest_before(self, attempt: int, heartbeat: Path | None, pattern: str | None) -> tuple[Numbers, int]:
        """Return the newest reported position with the newest loss up to it, and the attempt that reported it."""
        found, of = Numbers(), 0
        for number in sorted((one for one in self._run.attempt_numbers() if one < attempt), reverse=True):
            told = EarlierAttempt(self._run.attempt(number), self._machine, self._points).numbers(heartbeat, pattern)
            if of:
                found = _with_measured(found, told)
            elif _tells(told):
                found, of = told, number
            if _measured(found):
                break
        return found, of


def _with_measured(numbers: Numbers, earlier: Numbers) -> Numbers:
    """Add the loss, metrics and device of an earlier attempt, unless it got further than ``numbers``."""
    for count in ("step", "epoch"):
        reached, before = getattr(numbers, count), getattr(earlier, count)
        if reached is not None and before is not None:
            if reached < before:
                return numbers
            break
    told_by = {"loss": earlier.told_by["loss"]} if "loss" in earlier.told_by else {}
    return replace(
        numbers,
        loss=earlier.loss,
        lr=earlier.lr if numbers.lr is None else numbers.lr,
        metrics={**earlier.metrics, **numbers.metrics},
        told_by={**told_by, **numbers.told_by},
        device=numbers.device if numbers.device.type is not None else earlier.device,
    )


def _tells(numbers: Numbers) -> bool:
    return (numbers.epoch, numbers.step) != (None, None) or _measured(numbers)


def _measured(numbers: Numbers) -> bool:
    return numbers.loss is not None or not numbers.loss_is_finite
