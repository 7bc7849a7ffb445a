"""One run, read again and again: what was found before is kept, only what changed is looked at.

:class:`RunFollower` follows the numbers of any run: heartbeats, records of our own, logs and metric files of others.
What says where the run is, and which files these are, is told by the two kinds of it: :class:`RunReader` for run
directories of ours, :class:`mpstui.core.runs.watched.WatchedReader` for what mpstui did not start.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from ...wire import storage
from ...wire.records import LaunchRecord
from ...wire.rundir import RunDir
from ..follow import Budget, Occasional
from ..model.snapshot import Checkpoint, Health, Numbers, RunSnapshot, SeriesView, State
from .checkpoints import LOOK_SECONDS, CheckpointScanner
from .comparison import asked_totals
from .external import FACTS, ExternalMetrics, LogNotes, outputs_of
from .files import EventReader, LocalMachine, PointReader, WitnessReader
from .numbers import JoinedCurves, NumberWitnesses, ProgressPace, Witness, said, timed, with_facts
from .signs import Condition, Heartbeats, assess
from .state import exit_summary

HEALTHY = frozenset({State.RUNNING, State.UNSUPERVISED, State.STOPPING, State.STOP_FAILED})
STANDING = frozenset({Health.STALLED, Health.HUNG})
"""A run that stands still has neither a speed nor an end in sight, whatever it had before."""
LIST_SERIES, LIST_COLUMNS = ("loss",), 120
FULL_COLUMNS = 1024


class RunFollower:
    """The numbers of one run, followed through its files and attempts."""

    def __init__(self, machine: LocalMachine) -> None:
        self.machine = machine
        self.snapshot: RunSnapshot | None = None
        self.pace, self.program_pace = ProgressPace(), ProgressPace()
        """As we or the agent count, and as the program itself does."""
        self.heartbeats = Heartbeats(machine, self.pace, self.program_pace)
        self.points: PointReader | None = None
        """Its own metrics, where it is a run of ours."""
        self.external: ExternalMetrics | None = None
        self._earlier: list[ExternalMetrics] = []
        """The outputs of the attempts before this one, whose curves it continues."""
        self._joined = JoinedCurves()
        self._asked: Mapping[str, float] | None = None
        """The totals among its arguments; None until they are wanted."""
        self._resumed = False
        self._launched = 0.0
        self._output_changed: float | None = None
        self._moved: float | None = None
        self._pauses: deque[float] = deque(maxlen=30)
        self._full = False
        self._outdated = False
        self._pending = False
        """The numbers of the list are still to be read."""

    def refresh(self, *, full: bool, budget: Budget) -> RunSnapshot:
        """A snapshot of now; the very same object when nothing changed in a run that has settled.

        Args:
            full: with all curves, events and checkpoints.
        """
        raise NotImplementedError

    def read_on(self, budget: Budget) -> None:
        """Go on with the history alone, once a full :meth:`refresh` has begun it."""
        if self._shows_history:
            self._outdated = True
            if self.points is not None:
                self.points.read_history(budget)
            self._read_external(budget, anyway=True)

    @property
    def pending_bytes(self) -> int:
        """How much of the history that a full snapshot shows is still to be read."""
        return sum(file.pending_bytes for file in self._files()) if self._shows_history else 0

    @property
    def _shows_history(self) -> bool:
        """Nobody else keeps the curves of what is not ours: they are shown in the list too."""
        return self._full or self.points is None

    @property
    def settled(self) -> bool:
        """Whether it has ended for good, unless somebody starts it again."""
        return False

    @property
    def caught_up(self) -> bool:
        return not (self._pending or self._outdated) and (self.external is None or self.external.complete)

    @property
    def owed_bytes(self) -> int:
        """How much its curve for the list still lacks; less than nothing: nothing was read, the numbers neither."""
        external = self.external
        unread = self._pending or (external is not None and not external.newest and external.behind)
        return -1 if unread else external.pending_bytes if external is not None else 0

    @property
    def complete(self) -> bool:
        """Whether the curves hold every point."""
        return all(file.complete for file in self._files())

    def _files(self) -> list[PointReader | ExternalMetrics]:
        return [*self._earlier, *(file for file in (self.points, self.external) if file is not None)]

    def rest(self) -> None:
        """Nobody looks at it in full any more: give the memory of its whole history back."""
        if self.points is not None:
            self.points.drop_history()
        self._full = False

    def _read_external(self, budget: Budget, *, anyway: bool = False) -> None:
        """Read on in what is not ours; the outputs of earlier attempts first, for one curve from the first on.

        Args:
            anyway: one slice, even where the budget is spent already.
        """
        if (external := self.external) is None:
            return
        grown = [one.poll() for one in (external, *self._earlier)]  # this attempt's may be empty, one before it unread
        if (budget.spent and not anyway) or not any(grown):
            return
        external.preview()
        for one in self._earlier:
            one.read(budget)
            if not one.complete:
                return
        found = external.read(budget)
        program = self.heartbeats.program
        self.program_pace.feed(found, counts=program is None or program.step is None)

    def _numbers(self, attempt: int = 0, *, moving: bool) -> Numbers:
        """Joined from all that speak of it; one that stands still has neither a speed nor an end in sight."""
        beats, external = self.heartbeats, self.external
        own, program = beats.own, beats.program
        points = self.points.newest if self.points is not None else {}
        points = points if points.get("attempt", attempt) in (attempt, 0) else {}
        printed = external.newest if external is not None else {}
        numbers = NumberWitnesses(
            Witness(self._own_name, said(own, points)),
            Witness(beats.program_name, said(program, {})),
            Witness(external.path.name if external is not None else "", printed),
            Witness("arguments", self._asked or {}),
            counts_anew=own is not None and own.step_from == "process",
            sees_losses=own is not None and own.loss_seen == "backward",
            resumed=self._resumed,
        ).joined()
        by_program = numbers.told_by.get("step") != self._own_name
        numbers = timed(numbers, self.pace, self.program_pace, by_program=by_program, moving=moving)
        return with_facts(numbers, own, program, printed)

    @property
    def _own_name(self) -> str:
        own = self.heartbeats.own
        if own is None:
            return self.points.path.name if self.points is not None and self.points.newest else "heartbeat"
        return "agent" if own.step_from or own.loss_seen else "heartbeat"

    def _curves(self, full: bool, lead: str | None) -> Mapping[str, SeriesView]:
        """``lead``: the witness whose loss is shown."""
        names, most = (None, FULL_COLUMNS) if full else (LIST_SERIES, LIST_COLUMNS)
        own = self.points.views(names, most=most) if self.points is not None else {}
        printed = self.external.views(names, most=most) if self.external is not None else {}
        read = self.heartbeats.readings.views(names, most=most)
        told = [(self._own_name, own), (self.external.path.name if self.external is not None else "", printed)]
        return self._joined.of([*told, (self.heartbeats.program_name, read)], lead)

    def _written(self) -> list[float]:
        """When what it prints was last written."""
        files = (self.points.tail if self.points is not None else None, self.external.file if self.external else None)
        moments = [self._output_changed, *(file.changed_at for file in files if file is not None)]
        return [moment for moment in moments if moment is not None]

    def _updated(self) -> float | None:
        """The run's last sign of life, Unix seconds."""
        beat = self.heartbeats.beat
        return max((*self._written(), *((beat.time,) if beat else ())), default=None)

    def _told_by(self) -> str | None:
        """The name of the file that the numbers come from."""
        file = self.heartbeats.file
        if file is not None:
            return "heartbeat" if file.ours else file.path.name
        if self.points is not None and self.points.newest:
            return self.points.path.name
        return self.external.source if self.external and self.external.newest else None

    def _condition(self, *, paused: bool = False, process_state: str | None = None) -> Condition:
        """What it is doing, by its signs of life at this moment."""
        now = self.machine.clock()
        heard = self.heartbeats.signs(now)
        moved = max((moment for moment in self._written() if moment >= self._launched), default=None)
        if moved is not None and moved != self._moved:
            if self._moved is not None and moved > self._moved:
                self._pauses.append(moved - self._moved)
            self._moved = moved

        def age(moment: float | None) -> float | None:
            return None if moment is None else max(0.0, now - moment - heard.slept_seconds)

        steps = self.pace.steps if self.pace.steps.step is not None else self.program_pace.steps
        counted = steps.step is not None or (self.external is not None and not self.external.newest.keys() <= FACTS)
        signs = replace(
            heard,
            steps_done=counted or heard.steps_done,
            step_age=age(steps.advanced_at),
            usual_step_seconds=steps.seconds_per_step,
            output_age=age(self._moved),
            usual_output_seconds=median(self._pauses) if len(self._pauses) > 2 else None,
            paused=paused,
            process_state=process_state,
        )
        return assess(signs)


class RunReader(RunFollower):
    """Everything known about one run directory of ours."""

    def __init__(self, run: RunDir, machine: LocalMachine, notes: LogNotes | None = None) -> None:
        """``notes``: what is known of its log from an earlier look, for a list without curves."""
        super().__init__(machine)
        self.run = run
        self.witnesses = WitnessReader(run, machine)
        self.points = self._metrics = PointReader(run.metrics)
        self._events = EventReader(run.events)
        self._scanner, self._checkpoints = CheckpointScanner(), Occasional[tuple[Checkpoint, ...]](LOOK_SECONDS, ())
        self._notes = notes
        self._attempt = 0
        self._pattern: str | None = None
        self._output: Path | None = None
        self._known = False
        self._started: float | None = None

    @property
    def settled(self) -> bool:
        return self.witnesses.settled and self.snapshot is not None

    def refresh(self, *, full: bool, budget: Budget) -> RunSnapshot:
        if self.snapshot is not None and self._full >= full and self.witnesses.unchanged():
            nothing_more = self.complete and not self._outdated if full else self.caught_up
            if nothing_more or (budget.spent and not full):
                return self.snapshot
        self.witnesses.poll()
        if self.witnesses.attempt != self._attempt:
            self._attempt, self._output = self.witnesses.attempt, self.witnesses.folder.output
            self.pace.begin_attempt()
            self.program_pace.begin_attempt()
            self.heartbeats.begin_attempt(self.witnesses.folder)
            self._asked = None
        self.heartbeats.read()
        self.witnesses.judge(self.heartbeats.phase)
        self._follow_profile()
        self._read(full, budget)
        self._full, self._outdated = full, False
        self.snapshot = self._made(full)
        return self.snapshot

    def note(self) -> None:
        """Keep what was read of its log for the next look; what its reader stumbled over is read anew."""
        if self._notes is not None and self.external is not None and (note := self.external.note()) is not None:
            self._notes.keep(self.run.run, self.external.path, self._pattern, note)

    def _follow_profile(self) -> None:
        """Turn to the files that the profile names."""
        spec, launch = self.witnesses.spec.value, self.witnesses.launch.value
        self._launched = launch.time if launch else 0.0
        if spec is None or not spec.watch:
            return
        # Path.expanduser raises for a user whom this machine does not know.
        named = {kind: Path(spec.launch.cwd, os.path.expanduser(name)) for kind, name in spec.watch.items() if name}  # noqa: PTH111
        self._pattern = spec.watch.get("pattern")
        self.heartbeats.follow(named.get("heartbeat"), self._launched)
        other = named.get("metrics") or named.get("log")
        if other is not None and (self.external is None or self.external.path != other):
            self.external = self._opened(other)

    def _read(self, full: bool, budget: Budget) -> None:
        """Take in what was added; of a run that has ended, the list shows its numbers when there is time."""
        stamp = storage.stamp(self._output) if self._output else None
        self._output_changed = stamp[0] / 1e9 if stamp else None
        ended = self.witnesses.exit.value is not None
        self._pending = ended and not full and budget.spent and not self._known
        if self._pending:
            return
        self._known = True
        self.pace.feed(self._metrics.read_newest() if full or not ended else (), self._attempt)
        self._metrics.sketch(None if full else frozenset(LIST_SERIES))
        if full:
            self._metrics.read_history(budget)
            self._events.read()
        self._choose_external()
        if full:
            self._continue_attempts()
        self._read_external(budget)

    def _choose_external(self) -> None:
        """What to read beside our own files: the profile's file, or the output where nothing else tells numbers.

        Beside the agent the program's own words are wanted too: it may know better, and more.
        """
        output, beat = self._output, self.heartbeats.own
        if output is None:
            return
        if self.external is None:
            told = self._metrics.newest.get("epoch") is not None or (beat is not None and beat.epoch is not None)
            told = told and self._own_name != "agent"
            if self._output_changed is not None and not told:
                self.external = self._opened(output)
        elif self.external.path != output and self.run.path in self.external.path.parents:
            self.external, self._earlier = self._opened(output), []

    def _opened(self, path: Path) -> ExternalMetrics:
        found = ExternalMetrics(path, self.machine.clock, self._pattern)
        note = self._notes.find(self.run.run, path, self._pattern) if self._notes is not None else None
        if note is not None:
            found.recall(note)
        return found

    def _continue_attempts(self) -> None:
        """Make the attempt's output the continuation of those before it: one curve, read from the first on.

        What the list knew of it stays until that has come as far.
        """
        known, count = self.external, self._attempt - 1
        if known is None or known.path != self._output or len(self._earlier) == count:
            return
        *self._earlier, self.external = outputs_of(self.run, self._attempt, self.machine.clock, self._pattern)
        self.external.show(known.newest)

    def _numbers_of_attempt(self, launch: LaunchRecord | None, *, moving: bool) -> Numbers:
        if self._started is None and launch is not None:  # the start of the first attempt never changes
            self._started = (storage.read_or_none(LaunchRecord, self.run.attempt(1).launch) or launch).time
        own = self.heartbeats.own
        if self._asked is None and launch is not None and (own is None or own.steps is None):
            self._asked, self._resumed = asked_totals(launch.argv), launch.checkpoint is not None
        numbers = self._numbers(self._attempt, moving=moving)
        if numbers.device.type is None and launch is not None and launch.device not in (None, "auto", ""):
            # What was asked for stands in where it names a device and the trainer reports none.
            numbers = replace(numbers, device=numbers.device._replace(type=launch.device))
        planned = numbers.steps is not None or numbers.epochs is not None
        over = planned and not numbers.done and self.witnesses.verdict.state is State.FINISHED
        return replace(numbers, done=True) if over else numbers

    def _made(self, full: bool) -> RunSnapshot:
        witnesses, (state, reason) = self.witnesses, self.witnesses.verdict
        seen, launch, status, spec = witnesses.seen, witnesses.launch.value, witnesses.seen.status, witnesses.seen.spec
        live, paused, trainer = state.active, bool(status and status.paused), witnesses.trainer()
        condition = None
        if state in HEALTHY:
            condition = self._condition(paused=paused, process_state=trainer.state if trainer else None)
        moving = condition is not None and condition.health not in STANDING
        numbers = self._numbers_of_attempt(launch, moving=moving)
        events = tuple(self._events.events) if full else ()
        told = numbers.checkpoint, events[-1:], live  # of a checkpoint, or of the end
        look = partial(self._scanner.of_run, self.run.path, seen, numbers.checkpoint, events)
        return RunSnapshot(
            run=self.run.run,
            name=spec.name if spec else str(witnesses.spec.raw.get("name") or self.run.run),
            dir=self.run.path,
            state=state,
            reason=reason,
            seen=self.machine.clock(),
            health=condition.health if condition else None,
            health_note=condition.note if condition else "",
            profile=spec.profile if spec else None,
            recipe=spec.recipe if spec else None,
            numbers=numbers,
            device_asked=launch.device if launch else spec.launch.device if spec else None,
            attempt=witnesses.attempt,
            attempts=witnesses.attempts,
            pid=status.trainer[0] if status and status.trainer and live and witnesses.trainer_lives else None,
            started=self._started,
            attempt_started=launch.time if launch else None,
            ended=seen.exit.ended if seen.exit and not live else None,
            updated=self._updated(),
            exit=exit_summary(seen.exit) if seen.exit and not live else None,
            checkpoints=self._checkpoints.get(self.machine.monotonic(), told, look) if full else (),
            events=events,
            series=self._curves(full, numbers.told_by.get("loss")),
            argv=tuple(launch.argv) if launch else (),
            env=storage.masked(launch.env) if launch else {},
            paused=paused and live,
            held_for=status.held_for if status and live else None,
            output=self._output if self._output_changed is not None else None,
            survivors=seen.alive if not live else (),
            readers=self._told_by(),
            loading=full and not self.complete,
            brief=not full,
            unread=self.owed_bytes < 0,
            ranks=self.heartbeats.ranks() if full else (),
        )
