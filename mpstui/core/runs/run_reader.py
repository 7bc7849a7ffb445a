"""One run, read again and again: what was found before is kept, only what changed is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...wire import records, storage
from ...wire.heartbeat import DeviceReading
from ...wire.records import ExitRecord, LaunchRecord, LaunchTemplate
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord
from ..follow.file import Budget, RecordFile
from ..model.snapshot import ExitSummary, Health, Numbers, RunSnapshot, SeriesView, State
from .checkpoints import CheckpointScanner
from .events import EventReader
from .external import LogNotes
from .health import Condition, assess
from .sources import Sources
from .state import Verdict, Witnesses, never_began
from .vitals import Vitals
from .witness import Machine, WitnessReader

HEALTHY = frozenset({State.RUNNING, State.UNSUPERVISED, State.STOPPING, State.STOP_FAILED})
STANDING = frozenset({Health.STALLED, Health.HUNG})
"""A run that stands still has neither a speed nor an end in sight, whatever it had before."""
LIST_COLUMNS = 120
LIST_SERIES = ("loss",)
FULL_COLUMNS = 1024
"""More than any terminal has dots in a row."""
UNKNOWN_DEVICES = (None, "auto", "")


class RunReader:
    """Everything known about one run directory."""

    def __init__(self, run: RunDir, machine: Machine, notes: LogNotes | None = None) -> None:
        """``notes``: see :class:`Sources`."""
        self.run = run
        self.machine = machine
        self.witnesses = WitnessReader(run, machine)
        self.sources = Sources(run, machine, notes)
        self.events = EventReader(run)
        self.snapshot: RunSnapshot | None = None
        """The last picture that was made."""
        self._checkpoints = CheckpointScanner()
        self._vitals = Vitals(machine)
        self._started: float | None = None
        self._full = False
        self._outdated = False
        """More was read than the last picture shows."""

    def refresh(self, *, full: bool, budget: Budget) -> RunSnapshot:
        """A picture of now; the very same object when nothing changed in a run that has settled.

        Args:
            full: with all curves, events and checkpoints.
        """
        done = self.snapshot
        if done is not None and self._full >= full and self.witnesses.unchanged() and self._rests(full, budget):
            return done
        seen, verdict = self.witnesses.look(self._phase)
        self.sources.follow(self.witnesses)
        self.sources.read(full=full, budget=budget)
        if full:
            self.events.read()
        self._full, self._outdated = full, False
        self.snapshot = self._picture(seen, verdict, full)
        return self.snapshot

    def read_on(self, budget: Budget) -> None:
        """Go on with the history, without making a picture of it."""
        if self._full:
            self._outdated = True
            self.sources.read_on(budget)

    @property
    def owed_bytes(self) -> int:
        """How much of the history that a full picture shows is still to be read."""
        return self.sources.owed_bytes if self._full else 0

    @property
    def settled(self) -> bool:
        """Whether it has ended for good, unless somebody starts it again."""
        return self.witnesses.settled and self.snapshot is not None

    @property
    def caught_up(self) -> bool:
        """Whether the last picture shows all that the list needs."""
        return self.sources.caught_up and not self._outdated

    def _rests(self, full: bool, budget: Budget) -> bool:
        """Whether there is nothing more to read and to show, or no time to."""
        return (self.sources.exhausted(full) and not self._outdated) or (budget.spent and not full)

    def rest(self) -> None:
        """Nobody looks at it in full any more: give the memory of its whole history back."""
        self.sources.drop_history()
        self._full = False

    def _phase(self) -> str | None:
        self.sources.follow_attempt(self.witnesses.attempt, self.witnesses.folder)
        return self.sources.beating.phase

    def _picture(self, seen: Witnesses, verdict: Verdict, full: bool) -> RunSnapshot:
        now = self.machine.clock()
        numbers = self.sources.numbers()
        condition = self._condition(seen, verdict)
        launch, status, spec = self.witnesses.launch.value, seen.status, seen.spec
        live = verdict.state.active
        moving = condition is not None and condition.health not in STANDING
        return RunSnapshot(
            run=self.run.run,
            name=spec.name if spec else str(self.witnesses.spec.raw.get("name") or self.run.run),
            dir=self.run.path,
            state=verdict.state,
            reason=verdict.reason,
            seen=now,
            health=condition.health if condition else None,
            health_note=condition.note if condition else "",
            profile=spec.profile if spec else None,
            recipe=spec.recipe if spec else None,
            numbers=self.sources.pace.timed(replace(numbers, device=self._device(numbers, launch)), moving=moving),
            device_asked=spec.launch.device if spec else None,
            attempt=self.witnesses.attempt,
            attempts=self.witnesses.attempts,
            pid=status.trainer[0] if status and status.trainer and live and seen.trainer_lives else None,
            started=self._first_start(launch),
            attempt_started=launch.time if launch else None,
            ended=seen.exit.ended if seen.exit and not live else None,
            updated=self.sources.updated,
            exit=exit_summary(seen.exit) if seen.exit and not live else None,
            checkpoints=self._find_checkpoints(numbers, live=live) if full else (),
            events=tuple(self.events.events) if full else (),
            series=self._curves(full),
            argv=tuple(launch.argv) if launch else (),
            env=storage.masked(launch.env) if launch else {},
            paused=bool(status and status.paused and live),
            held_for=status.held_for if status and live else None,
            output=self.sources.output,
            survivors=seen.alive if not live else (),
            readers=self.sources.told_by,
            loading=full and not self.sources.complete,
            brief=not full,
        )

    def _condition(self, seen: Witnesses, verdict: Verdict) -> Condition | None:
        if verdict.state not in HEALTHY:
            return None
        paused = bool(seen.status and seen.status.paused)
        return assess(self._vitals.signs(self.sources, self.witnesses.trainer(), paused=paused))

    def _curves(self, full: bool) -> Mapping[str, SeriesView]:
        if full:
            return self.sources.views(most=FULL_COLUMNS)
        return self.sources.views(LIST_SERIES, most=LIST_COLUMNS)

    def _first_start(self, launch: LaunchRecord | None) -> float | None:
        """When the first attempt was started; it never changes."""
        if self._started is None and launch is not None:
            first = launch
            if launch.attempt > 1:
                file = RecordFile(self.run.attempt(1).launch, partial(records.from_json, LaunchRecord))
                file.read()
                first = file.value or launch
            self._started = first.time
        return self._started

    def _device(self, numbers: Numbers, launch: LaunchRecord | None) -> DeviceReading:
        """What the trainer reports; what was asked for stands in only where it names a device."""
        if numbers.device.type is not None or launch is None or launch.device in UNKNOWN_DEVICES:
            return numbers.device
        return DeviceReading(launch.device, numbers.device.name, numbers.device.precision)

    def _template(self) -> LaunchTemplate | None:
        status, spec = self.witnesses.status.value, self.witnesses.spec.value
        if status is not None and status.template:
            try:
                return records.from_json(LaunchTemplate, status.template)
            except (UnreadableRecord, TypeError, AttributeError):
                pass  # a template of another program: what the spec says still holds
        return spec.launch if spec else None

    def _find_checkpoints(self, numbers: Numbers, *, live: bool) -> tuple[Any, ...]:
        template = self._template()
        folders = (self.run.path, Path(template.cwd)) if template else (self.run.path,)
        steps = {Path(note.path).name: note.step for note in (numbers.checkpoint,) if note and note.step is not None}
        for event in self.events.events:
            path, step = event.details.get("path"), event.details.get("step")
            if event.event == "checkpoint" and isinstance(path, str) and isinstance(step, int):
                steps[Path(path).name] = step
        pattern = template.checkpoints if template else None
        return self._checkpoints.scan(pattern, folders, steps, self.machine.monotonic(), live=live)


def exit_summary(record: ExitRecord) -> ExitSummary:
    """The exit record as the screen shows it."""
    return ExitSummary(
        code=record.code,
        signal=record.signal,
        cause=record.cause,
        requested_by=record.requested_by,
        action=record.action,
        ended=record.ended,
        spawn_error=record.spawn_error,
        evidence=record.evidence,
        unbegun=never_began(record),
    )
