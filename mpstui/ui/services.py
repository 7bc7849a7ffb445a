"""The core as the screen uses it. The first paint waits for none of it: each part is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..core.model.snapshot import State

if TYPE_CHECKING:
    from ..core.diagnosis.model import EvidenceLine, Finding
    from ..core.launching.actions import Actions, SupervisorRecovery
    from ..core.launching.cure import Cure
    from ..core.launching.rehearsal import Rehearsed
    from ..core.logview.document import LogDocument
    from ..core.model.home import Home
    from ..core.model.snapshot import RunSnapshot
    from ..core.runs.details import Section
    from ..core.runs.ghost import GhostFinder
    from ..core.runs.listing import ListView
    from ..core.runs.monitor import Monitor
    from ..core.runs.queueing import Moved
    from ..core.runs.removal import Removable, Removed, Remover
    from ..core.settings import Settings
    from ..core.telemetry.run_telemetry import TelemetryRecorder
    from ..core.telemetry.sampler import Sampler
    from ..wire.queues import Queue
    from .alarms import Alarm
    from .drafts import Launcher


class Explanation(NamedTuple):
    """Why an attempt ended, and what can be done."""

    findings: Sequence[Finding]
    exception: EvidenceLine | None = None
    """The last one of its log, where nothing is found."""
    cure: Cure | None = None
    rehearsed: Rehearsed | None = None


class Services:
    """Everything the screen asks of the core, for one home. Most of it reads files: call it from a worker."""

    def __init__(
        self,
        home: Home,
        environ: Mapping[str, str],
        cwd: Path,
        clock: Callable[[], float],
        watching: Path | None = None,
    ) -> None:
        """``watching``: a file or folder that mpstui did not start, shown beside the runs."""
        self.home, self.environ, self.clock = home, environ, clock
        self.remote = bool(environ.get("SSH_CONNECTION"))
        """Over SSH: draw once a second."""
        self._cwd, self._watching = cwd, watching

    def monitor(self) -> Monitor:
        """A new monitor, for the thread that asks for it."""
        from ..core.launching.record import available
        from ..core.runs.monitor import Monitor
        from ..core.runs.summaries import Summaries

        kept = Summaries(self.home.state / "cache" / "runs.jsonl")
        made = Monitor(self.home, availability=available, kept=kept)
        if self._watching is not None:
            made.watch(self._watching)
        return made

    def ghosts(self) -> GhostFinder:
        """A new finder of the best earlier run, for the thread that asks for it."""
        from ..core.runs.ghost import GhostFinder

        return GhostFinder()

    @cached_property
    def actions(self) -> Actions:
        """What sends requests."""
        from ..core.launching.actions import Actions

        return Actions(self.environ, self.clock)

    @cached_property
    def recovery(self) -> SupervisorRecovery:
        """What gives queued runs whose supervisor has died a new one."""
        from ..core.launching.actions import SupervisorRecovery

        return SupervisorRecovery(self.home, self.actions.supervise, self.actions.supervising_many)

    def sampler(self) -> Sampler:
        """A new reader of the machine; each sample may take a while."""
        from ..core.telemetry.sampler import default_sampler

        return default_sampler()

    def recorder(self, snapshot: RunSnapshot) -> TelemetryRecorder:
        """What notes and recalls the telemetry of one run."""
        from ..core.telemetry.run_telemetry import TelemetryRecorder

        return TelemetryRecorder(snapshot)

    def open_log(self, path: Path) -> LogDocument:
        """A log file by lines."""
        from ..core.logview.document import LogDocument

        return LogDocument(path)

    def explain(self, snapshot: RunSnapshot) -> Explanation:
        """Why its newest attempt ended, and what can be done."""
        from ..core.diagnosis.engine import diagnose_run
        from ..core.launching.rehearsal import newest_rehearsal
        from ..wire.rundir import RunDir

        run, findings = RunDir(snapshot.dir), diagnose_run(snapshot.dir)
        tried = newest_rehearsal(run)
        if not findings:
            from ..core.diagnosis.evidence import evidence_from_run_dir
            from ..core.diagnosis.log_text import last_exception

            return Explanation((), last_exception(evidence_from_run_dir(snapshot.dir).lines), None, tried)
        from ..core.launching.cure import cure_of
        from ..core.model.errors import OperationError

        try:
            return Explanation(findings, None, cure_of(run, findings, self.environ, self.home.arguments), tried)
        except OperationError:  # its record cannot be read: nothing can be started from it
            return Explanation(findings, None, None, tried)

    def launcher(self) -> Launcher:
        """Saved profiles and the forms made of them."""
        from .drafts import Launcher

        return Launcher(self.home, self.environ, self._cwd, self.actions, self.clock)

    def settings(self) -> Settings:
        """What ``settings.toml`` says.

        Raises:
            UsageError: it has mistakes.
        """
        from ..core.settings import load_settings

        return load_settings(self.home)

    def notification(self, found: Sequence[Alarm]) -> str:
        """The control sequences that tell the terminal of alarms, as the user set it.

        Raises:
            UsageError: the settings have mistakes.
        """
        from .alarms import words_for

        return words_for(found, self.settings().alerts, self.environ)

    def details(self, snapshot: RunSnapshot) -> tuple[Section, ...]:
        """What is known of a run beside its numbers."""
        from ..core.runs.details import details

        return details(snapshot)

    def looked_into(self, runs: Sequence[RunSnapshot]) -> list[RunSnapshot]:
        """Snapshots of the list with their checkpoints and what can be done with each."""
        from ..core.launching.record import looked_into

        return looked_into(runs)

    def export(self, snapshot: RunSnapshot, metric: str, form: str) -> Path:
        """Write a run's points (``csv``) or the chart of a metric (``svg``, ``png``) to a new file; where it is.

        Raises:
            OperationError: what writes it is not installed. OSError: the folder cannot be written.
        """
        from ..core.runs.monitor import Monitor
        from ..core.sharing import export

        target = export.unused_path(self._cwd, snapshot.name, form)
        if form == "csv":
            monitor = Monitor(self.home, columns=export.MOST_POINTS)
            watched = monitor.watch(Path(snapshot.run)) if snapshot.state is State.WATCHED else snapshot.run
            export.write_csv(export.table_of(monitor.snapshot(watched)), target)
        else:
            from ..wire import storage
            from .charting.picture import as_png, as_svg

            storage.write_bytes(target, (as_svg if form == "svg" else as_png)(snapshot, metric))
        return target

    # -- queues, whose changes are made at once, under the group's own lock

    def paused_queues(self) -> tuple[str, ...]:
        """Queues that start nothing, also those that nobody waits in."""
        from ..core.runs.queueing import paused_groups

        return paused_groups(self.home)

    def move_in_queue(self, snapshot: RunSnapshot, direction: str) -> Moved:
        """Move a queued run ``up`` or ``down`` by one place."""
        from ..core.runs.queueing import move_run
        from ..wire.rundir import RunDir

        return move_run(self.home, RunDir(snapshot.dir), direction)

    def pause_queue(self, group: str, paused: bool) -> Queue:
        """Start nothing more from a queue, or start again."""
        from ..core.runs.queueing import set_paused

        return set_paused(self.home, group, paused)

    # -- the list

    def list_view(self) -> ListView:
        """How the list was left."""
        from ..core.runs.listing import load_view

        return load_view(self.home)

    def keep_list_view(self, view: ListView) -> None:
        """Remember how the list is left.

        Raises:
            OperationError: it could not be kept.
        """
        from ..core.runs.listing import save_view

        save_view(self.home, view)

    def likely_program(self) -> str:
        """A program in the current folder that may train something, by its name."""
        found = sorted(self._cwd.glob("*train*.py"))
        return found[0].name if found else "train.py"

    # -- what people say of runs

    def label(self, snapshots: Sequence[RunSnapshot], what: str, before: str, text: str) -> None:
        """Write down a ``note``, a ``name`` or ``tags``: the text as a person changed it from what stood there before.

        Raises:
            UsageError: it is too long, or no tag. OperationError: it could not be kept.
        """
        from ..core.runs import labelling
        from ..wire.rundir import RunDir

        for snapshot in snapshots:
            run = RunDir(snapshot.dir)
            if what == "tags":
                labelling.tag(run, *labelling.tag_changes(text.split(), before.split()))
            elif what == "name":
                labelling.rename(run, text)
            else:
                labelling.annotate(run, text)

    # -- runs that have ended

    @cached_property
    def _remover(self) -> Remover:
        from ..core.runs.removal import Remover

        return Remover(self.home)

    def examine_removal(self, snapshot: RunSnapshot) -> Removable:
        """What removing a run would delete.

        Raises:
            OperationError: it must stay.
        """
        from ..wire.rundir import RunDir

        return self._remover.examine(RunDir(snapshot.dir))

    def remove(self, snapshot: RunSnapshot, *, keep_checkpoints: bool) -> Removed:
        """Delete a run, and what an interrupted removal left.

        Raises:
            OperationError: it must stay after all.
        """
        from ..wire.rundir import RunDir

        self._remover.clean_up()
        return self._remover.remove(RunDir(snapshot.dir), keep_checkpoints=keep_checkpoints)
