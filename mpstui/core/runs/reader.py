"""Reads one run directory of ours repeatedly: keeps what was found, and reads only what has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...wire import labels, storage
from ...wire.records import Branch, LaunchRecord, Spec
from ...wire.rundir import AGENT_DEVICE_VARIABLE, RunDir
from ..follow import Budget, Occasional, RecordFile
from ..model.snapshot import Checkpoint, Numbers, RunSnapshot, SeriesView, State
from ..series.series import SeriesStore
from .before import Before
from .checkpoints import LOOK_SECONDS, CheckpointScanner
from .configured import settings_before, settings_in
from .external import ExternalMetrics
from .files import PointReader, WitnessReader
from .follower import LIST_SERIES, RunFollower
from .images import IMAGE_SECONDS, NewestImage
from .journal import EventReader, Extremes, ExtremesReader
from .lasting import idle_before, left_by_average, training_began
from .local_machine import LocalMachine
from .log_notes import LogNotes
from .outputs import Outputs
from .planned import planned_totals
from .run_settings import with_arguments
from .state import RunWitnesses, exit_summary
from .summaries import Stamps, Summaries, files_of, stamps_of

if TYPE_CHECKING:
    from .lineage import Lineage
    from .recalled import RecalledRun

HEALTHY = frozenset({State.RUNNING, State.UNSUPERVISED, State.STOPPING, State.STOP_FAILED})


def _of_spec(spec: Spec | None) -> dict[str, Any]:
    return {name: getattr(spec, name, None) for name in ("profile", "recipe", "branch")}


def _of_end(seen: RunWitnesses) -> dict[str, Any]:
    ended = {"ended": seen.exit.ended, "exit": exit_summary(seen.exit)} if seen.exit is not None else {}
    return {**ended, "survivors": seen.alive, "moved_to": seen.moved.to if seen.moved else None}


class KnownCommand:
    """The command and environment of the newest attempt, or the requested ones until the first attempt starts.

    Secrets are masked, once per launch.
    """

    def __init__(self) -> None:
        self.argv: tuple[str, ...] = ()
        self.facts: dict[str, Any] = {}
        """The snapshot fields derived from it."""
        self._of: LaunchRecord | Spec | None = None

    def learn(self, launch: LaunchRecord | None, spec: Spec | None, run: RunDir) -> bool:
        """Take the command from the launch record, else from the spec; True if it has changed."""
        source = launch or spec
        if source is None or source is self._of:
            return False
        from ...wire.secrets import masked, masked_words  # a recalled run does not need it

        self._of = source
        said = source if isinstance(source, LaunchRecord) else source.launch.variants.get(source.launch.device)
        argv, env = (said.argv, said.env) if said else ((), {})
        self.argv = masked_words(argv)
        self.facts = {"argv": self.argv, "env": masked(env)}
        if isinstance(source, LaunchRecord):
            self.facts |= {"begun_from": source.checkpoint, "idle": idle_before(run, source)}
        return True


class RunReader(RunFollower):
    """Everything known about one run directory of ours."""

    def __init__(
        self, run: RunDir, machine: LocalMachine, notes: LogNotes | None = None, columns: int | None = None
    ) -> None:
        """``notes``: what an earlier process noted about its log, for a list without curves."""
        super().__init__(machine, columns)
        self.run, self.key = run, run.run  # the id in its snapshots; for a watched run, that is its path
        self.witnesses = WitnessReader(run, machine)
        self.points = self._metrics = PointReader(run.metrics, self.capacity)
        self._events, self._images = EventReader(run.events), Occasional[int](IMAGE_SECONDS, 0)
        self._newest_image = NewestImage(run).number
        self._extremes = ExtremesReader(run.metrics)
        self._stamps: Stamps | None = None
        """Stamps of the files that an ended run was read from, taken before reading; None if not looked at."""
        self._recalled_curves: Mapping[str, SeriesView] = {}
        """Curves saved by an earlier process, shown until the whole history has been read."""
        self._remembered: Stamps | None = None
        """The stamps under which it was saved for the next process."""
        self._recalled = ""
        """The name it was launched under while everything known comes from an earlier process, else empty."""
        self._config = RecordFile(self.witnesses.folder.config, settings_in)
        self._settings: Mapping[str, str] = {}
        """The settings its code reports: those of this attempt or, until it reports any, of an earlier one."""
        self._labels = RecordFile(run.labels, labels.parse)
        self._scanner, self._checkpoints = CheckpointScanner(), Occasional[tuple[Checkpoint, ...]](LOOK_SECONDS, ())
        self._notes = notes
        self._lineage: Lineage | None = None
        self._pattern: str | None = None
        self._output: Path | None = None
        self._output_bytes, self._known, self._attempt = 0, False, 0
        self._outputs = Outputs(run, machine, self.capacity)
        self._started: float | None = None
        self._command, self._before = KnownCommand(), Before(run, machine, self._metrics)

    @property
    def settled(self) -> bool:
        return self.witnesses.settled and self.snapshot is not None

    @property
    def queue_group(self) -> str | None:
        """The queue it was launched into."""
        spec = self.witnesses.spec.value
        return spec.queue.group if spec is not None else None

    @property
    def caught_up(self) -> bool:
        return super().caught_up and (self._extremes.complete or self._failed or bool(self._recalled))

    @property
    def list_pending_bytes(self) -> int:
        return self._output_bytes if self.unread else super().list_pending_bytes + self._extremes.pending_bytes

    def _refreshed(self, full: bool, budget: Budget) -> RunSnapshot:
        if self.snapshot is not None and self._full >= full and self.witnesses.unchanged():
            nothing_more = self.complete and not self._outdated if full else self.caught_up
            if nothing_more or (budget.spent and not (full and self._outdated)):
                return self.snapshot
        if self._recalled and self.snapshot is not None and self._stamps is not None:
            self.witnesses.believe()
            if stamps_of(self.run, self._stamps) != self._stamps:
                self._recalled_curves = {}
            elif not full:  # only its labels can have changed
                return replace(self.snapshot, **self._label_fields())
        self._recalled = ""
        self.witnesses.poll()
        if self.witnesses.attempt != self._attempt:
            self._recalled_curves = {} if self._attempt else self._recalled_curves
            self._attempt, self._output = self.witnesses.attempt, self.witnesses.folder.output
            self.pace.begin_attempt()
            self.program_pace.begin_attempt()
            self.heartbeats.begin_attempt(self.witnesses.folder)
            self._asked, self._extremes = None, ExtremesReader(self.run.metrics)
            self._config = RecordFile(self.witnesses.folder.config, settings_in)
            self._settings = next((said for _, said in settings_before(self.run, self._attempt)), {})
        self._follow_profile()
        self._stamps = self._take_stamps()
        if self._config.read() and self._config.value is not None:  # it may be half written
            self._settings = self._config.value
        self.heartbeats.read()
        self.witnesses.judge(self.heartbeats.phase)
        self._read(full, budget)
        self._recalled_curves = self._recalled_curves if full and not self.complete else {}
        self._full, self._outdated = full, False
        return self._compose(full)

    def _unreadable(self, why: str) -> RunSnapshot:
        state, reason = self.witnesses.verdict
        return RunSnapshot(
            run=self.key,
            **self._label_fields(),
            dir=self.run.path,
            state=state if reason else State.UNREADABLE,
            reason=f"{reason}; {why}" if reason else why,
            seen=self.machine.clock(),
            attempt=self.witnesses.attempt,
            attempts=self.witnesses.attempts,
            survivors=self.witnesses.seen.alive if not state.active else (),
            brief=not self._full,
        )

    def recall(self, known: RecalledRun) -> None:
        """Start from what an earlier process read; that is enough until the run is needed in full."""
        self.snapshot = known.snapshot
        self._stamps = self._remembered = known.stamps
        self._recalled_curves, self._recalled = known.snapshot.series, known.launched_name
        self.witnesses.believe()

    def remember(self, kept: Summaries) -> bool:
        """Save what is known for the next process if the run has ended and was read completely; True if saved."""
        found = self.snapshot
        if self._stamps is None or self._stamps == self._remembered or found is None:
            return False
        read = self.caught_up if found.brief else self.complete and not self._outdated
        if not (self.settled and read) or self._failed or found.survivors or found.unread:
            return False
        self._remembered = self._stamps
        if not found.brief:
            found = replace(found, series=self._curves(False, found.numbers.told_by), loading=False)
        kept.keep(self.run, self._launched_name, self._stamps, found)
        return True

    def _take_stamps(self) -> Stamps | None:
        """Return the stamps of the files about to be read; None while a supervisor may still write to them."""
        if self.witnesses.seen.supervisor_held:
            return None
        others = [one.path for one in (self.external, self.heartbeats.file) if one is not None]
        return stamps_of(self.run, files_of(self.run, self._attempt, others))

    def _known_extremes(self, curves: Mapping[str, SeriesView], full: bool) -> Extremes:
        """Return the lowest and highest values, printed ones included; the previous ones until all is read."""
        if full and self.complete:
            return {name: (view.minimum, view.maximum) for name, view in curves.items()}
        if full or not self._extremes.complete or (self.external is not None and not self.external.complete):
            before = self.snapshot
            return before.extremes if before is not None and before.attempt == self._attempt else {}
        printed = self.external.store.extremes() if self.external is not None else {}
        return {**printed, **self._extremes.found} if printed else self._extremes.found

    def _label_fields(self) -> dict[str, Any]:
        """Return its labels as snapshot fields; without a name among them, it has that of the launch, or its id."""
        self._labels.read()
        said = self._labels.value or labels.Labels()
        return {**said._asdict(), "name": said.name or self._launched_name}

    @property
    def _launched_name(self) -> str:
        spec = self.witnesses.spec
        return self._recalled or (spec.value.name if spec.value else str(spec.raw.get("name") or self.run.run))

    def note(self) -> None:
        """Note for the next process what was read of its log, unless part of it could not be parsed."""
        if self._notes is not None and self.external is not None and (note := self.external.note()) is not None:
            self._notes.keep(self.run.run, self.external.path, self._pattern, note)

    def _follow_profile(self) -> None:
        """Follow the files named in the profile."""
        spec, launch = self.witnesses.spec.value, self.witnesses.launch.value
        self._launched = launch.time if launch else 0.0
        if spec is None or not spec.watch:
            return
        # Path.expanduser raises for a user that this machine does not know.
        named = {kind: Path(spec.launch.cwd, os.path.expanduser(name)) for kind, name in spec.watch.items() if name}  # noqa: PTH111
        self._pattern = spec.watch.get("pattern")
        self.heartbeats.follow(named.get("heartbeat"), self._launched)
        other = named.get("metrics") or named.get("log")
        if other is not None and (self.external is None or self.external.path != other):
            self.external = self._open_metrics(other)

    def _read(self, full: bool, budget: Budget) -> None:
        """Read what was added; an ended run that is shown only in the list waits until there is time."""
        stamp = storage.stamp(self._output) if self._output else None
        self._output_changed, self._output_bytes = (stamp[0] / 1e9, stamp[2]) if stamp else (None, 0)
        ended = self.witnesses.exit.value is not None
        self._pending = ended and not full and budget.spent and not self._known
        if self._pending:
            return
        first, self._known = ended and not self._known, True
        self.pace.feed(self._metrics.read_newest() if full or not ended else (), self._attempt)
        if not full and (self._extremes.complete or not budget.spent):
            self._extremes.read(budget)
            if ended:
                self._extremes.rest()
        self._metrics.sketch(None if full else frozenset(LIST_SERIES))
        if full:
            if not (budget.spent and self._metrics.pending_bytes):  # several runs may share the budget in turn
                self._metrics.read_history(budget)
            self._events.read()
        self._choose_external()
        if full:
            self._continue_attempts()
        self._read_external(budget, anyway=first)  # importing the log readers may have used up all the time
        if ended and self.external is not None:
            self.external.finish()

    def _choose_external(self) -> None:
        """Decide what to read besides our own files: the profile's file, or the output if nothing else has numbers.

        The output may tell more than the agent knows. If a program reports to us itself, its output is read only until
        the first numbers it reports.
        """
        if (output := self._output) is None:
            return
        beat = self.heartbeats.own
        told = self._metrics.newest.get("epoch") is not None or (beat is not None and beat.epoch is not None)
        told = told and self._is_told_by_trainer
        if self.external is None:
            if self._output_changed is not None and not told:
                self.external = self._open_metrics(output)
        elif self.run.path in self.external.path.parents and (told or self.external.path != output):
            self.external, self._earlier = None if told else self._open_metrics(output), []

    def _open_metrics(self, path: Path) -> ExternalMetrics:
        found = ExternalMetrics(path, self.machine.clock, self._pattern, store=SeriesStore(capacity=self.capacity))
        notes = self._notes if self.witnesses.exit.value is None else None  # an ended run is read to its end
        note = notes.find(self.run.run, path, self._pattern) if notes is not None else None
        if note is not None:
            found.recall(note)
        return found

    def _continue_attempts(self) -> None:
        """Chain this attempt's output to the earlier ones, for curves that start at the first attempt.

        The newest numbers, as the list had them, stay until the new curves have got that far.
        """
        known = self.external
        if known is None or known.path != self._output:
            return
        if len(self._earlier) + 1 == self._attempt and not self._outputs.is_misplaced(known, self._attempt):
            return
        *self._earlier, self.external = self._outputs.chain(self._attempt, self._pattern, known.newest)

    def _numbers_of_attempt(self, launch: LaunchRecord | None, *, moving: bool) -> Numbers:
        if self._started is None and launch is not None:  # the start of the first attempt never changes
            self._started = (storage.read_or_none(LaunchRecord, self.run.attempt(1).launch) or launch).time
        if self._command.learn(launch, self.witnesses.spec.value, self.run) and self._config.value is None:
            self._settings = with_arguments(self._settings, self._command.argv)
        own = self.heartbeats.own
        if self._asked is None and launch is not None and (own is None or own.steps is None):
            self._asked, self._resumed = planned_totals(launch), launch.checkpoint is not None
        numbers = self._numbers(self._attempt, moving=moving)
        named = launch is not None and AGENT_DEVICE_VARIABLE in launch.env and not (own and own.device.type)  # not used
        if (numbers.device.type is None or named) and launch and launch.device not in (None, "auto", ""):
            # Use the requested device if the trainer reports none.
            numbers = replace(numbers, device=numbers.device._replace(type=launch.device))
        printed, of_many = (self.external.newest, self.external.starts_anew) if self.external else ({}, False)
        # With known steps, two beats give a better speed than the average since the start.
        times = own is not None and own.step is not None and (numbers.steps or own.step_from or own.begun_step)
        of_many = of_many or (own is not None and own.training is not None)
        if moving and numbers.eta_seconds is None and launch and not launch.checkpoint and not (of_many or times):
            now, began = self._updated() or launch.time, training_began(self.run.attempt(launch.attempt), launch)
            silent = now - (self._output_changed or now)
            numbers = replace(numbers, eta_seconds=left_by_average(numbers, printed, now - began, silent))
        over = not self.witnesses.verdict.state.active
        if not self._pending and (over or launch is None or launch.checkpoint):
            followed = self.heartbeats.followed
            numbers = self._before.behind(numbers, self._attempt, followed, self._pattern, over=over)
        finished = not numbers.done and self.witnesses.verdict.state is State.FINISHED
        return replace(numbers, done=True) if finished and (numbers.steps, numbers.epochs) != (None, None) else numbers

    def _all_curves(self, full: bool, told_by: Mapping[str, str], branch: Branch | None) -> dict[str, SeriesView]:
        """Return all curves, including those saved by an earlier process; a branch continues those of its parent."""
        curves = {**self._curves(full, told_by), **self._recalled_curves}
        if not full or branch is None:
            return curves
        from .lineage import lineage_of  # only for branches

        self._lineage = self._lineage or lineage_of(branch, self)
        return self._lineage.behind(curves)

    def _compose(self, full: bool) -> RunSnapshot:
        witnesses, (state, reason) = self.witnesses, self.witnesses.verdict
        seen, launch, status, spec = witnesses.seen, witnesses.launch.value, witnesses.seen.status, witnesses.seen.spec
        live, paused = state.active, bool(status and status.paused)
        process = trainer.state if (trainer := witnesses.trainer()) else None
        condition = self._condition(paused=paused, process_state=process) if state in HEALTHY else None
        moving = condition is not None and condition.moves
        numbers = self._numbers_of_attempt(launch, moving=moving)
        events = self._events.events if full else ()
        curves = self._all_curves(full, numbers.told_by, spec.branch if spec else None)
        numbers = self._without_joined(numbers) if full else numbers
        told = numbers.checkpoint, events[-1:], live, numbers.loss_is_finite  # a change calls for a new look
        look = partial(self._scanner.of_run, self.run.path, seen, numbers, events)
        return RunSnapshot(
            run=self.key,
            **self._label_fields(),
            dir=self.run.path,
            state=state,
            reason=reason,
            seen=self.machine.clock(),
            health=condition.health if condition else None,
            health_note=condition.note if condition else "",
            **_of_spec(spec),
            job=seen.job,
            moving=seen.moving,
            numbers=numbers,
            device_asked=launch.device if launch else spec.launch.device if spec else None,
            attempt=witnesses.attempt,
            attempts=witnesses.attempts,
            pid=status.trainer[0] if status and status.trainer and live and witnesses.trainer_lives else None,
            started=self._started,
            attempt_started=launch.time if launch else None,
            **(_of_end(seen) if not live else {}),
            updated=self._updated(),
            checkpoints=self._checkpoints.get(self.machine.monotonic(), told, look) if full else (),
            events=events,
            images=self._images.get(self.machine.monotonic(), live, self._newest_image) if full else 0,
            series=curves,
            **self._command.facts,
            settings=self._settings,
            paused=paused and live,
            held_for=status.held_for if status and live else None,
            output=self._output if self._output_changed is not None else None,
            readers=self._main_source(),
            loading=full and not self.complete,
            brief=not full,
            unread=self.unread,
            extremes=self._known_extremes(curves, full),
            ranks=self.heartbeats.ranks() if full else (),
        )
