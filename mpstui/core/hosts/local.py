"""Everything that a screen asks of one machine, on that machine itself; the far end of a line answers from it too.

Each part is imported when it is first asked for, so that the first paint waits for none of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...wire import storage

if TYPE_CHECKING:
    from ...wire.queues import Queue
    from ..launching.actions import Actions, SupervisorRecovery
    from ..launching.drafts import Launcher
    from ..launching.explaining import Explanation
    from ..logview.document import LogDocument
    from ..model.home import Home
    from ..model.snapshot import Availability, RunSnapshot
    from ..runs.details import Section
    from ..runs.ghost import GhostFinder
    from ..runs.listing import ListView
    from ..runs.logged import Seen, Wanted
    from ..runs.monitor import Monitor
    from ..runs.queueing import Moved
    from ..runs.removal import Removable, Removed, Remover
    from ..runs.window import Stretches, Window, WindowReader
    from ..settings import Settings
    from ..sharing.export import Table
    from ..telemetry.run_telemetry import TelemetryRecorder
    from ..telemetry.sampler import Sampler
    from .moving import Mover

Stamp = tuple[int, int, int]


def _available(snapshot: RunSnapshot) -> Mapping[str, Availability]:
    from ..launching.record import available  # not before a run is selected

    return available(snapshot)


class LocalServices:
    """Everything the screen asks of the core, for one home. Most of it reads files: call it from a worker."""

    troubles: tuple[str, ...] = ()
    """What is wrong with the connections to other machines, in sentences."""

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
        self._told_left_out = False
        self.notices: deque[str] = deque()
        """Sentences about earlier requests, to be shown in passing."""
        self.queues_stamp: Callable[[], Stamp | None] = partial(storage.stamp, home.queue)
        """A stamp that changes when a queue does, its time first."""
        self.stamp: Callable[[Path], Stamp | None] = storage.stamp
        """A stamp that changes when a log does, its size last; None if there is no log."""

    def monitor(self, columns: int | None = None) -> Monitor:
        """A new monitor, for use by the calling thread; for ``columns`` see :class:`.Monitor`."""
        from ..runs.monitor import Monitor
        from ..runs.summaries import Summaries

        kept = Summaries(self.home.state / "cache" / "runs.jsonl")
        made = Monitor(self.home, availability=_available, kept=kept, columns=columns)
        if self._watching is not None:
            made.watch(self._watching)
            if made.watched.left_out and not self._told_left_out:
                self._told_left_out = True
                found = "`mpstui ps PATH --all --filter WORDS` finds them"
                self.notices.append(f"{made.watched.left_out:,} older runs are not listed: {found}")
        return made

    def machines(self) -> tuple[str, ...]:
        """The machines that a run can be started on or moved to, ``local`` first, by their names in the settings."""
        hosts = self.settings().hosts
        return tuple(dict.fromkeys(["local", *hosts.show, *hosts.named]))

    def mover(self, snapshot: RunSnapshot, to: str) -> tuple[Mover, str]:
        """What moves a run to another machine, and the run's id on the machine where it is."""
        from .moving import mover

        source, name = snapshot.host or "local", snapshot.run.removeprefix(f"{snapshot.host}:")
        return mover(source, to, self.settings().hosts, self.environ), name

    def close(self) -> None:
        """Release what is held, which is nothing here."""

    def ghosts(self) -> GhostFinder:
        """A new finder of the best earlier run, for use by the calling thread."""
        from ..runs.ghost import GhostFinder

        return GhostFinder()

    @cached_property
    def actions(self) -> Actions:
        """Sends requests to runs."""
        from ..launching.actions import Actions

        return Actions(self.environ, self.clock)

    @cached_property
    def recovery(self) -> SupervisorRecovery:
        """Gives queued runs a new supervisor if theirs has died."""
        from ..launching.actions import SupervisorRecovery

        return SupervisorRecovery(self.home, self.actions.supervise, self.actions.supervising_many)

    def sampler(self) -> Sampler:
        """A new sampler of the machine; each sample may take a while."""
        from ..telemetry.sampler import default_sampler

        return default_sampler()

    def recorder(self, snapshot: RunSnapshot) -> TelemetryRecorder:
        """A recorder of one run's telemetry, which also reads it back."""
        from ..telemetry.run_telemetry import TelemetryRecorder

        return TelemetryRecorder(snapshot)

    def open_log(self, path: Path) -> LogDocument:
        """A log file, read by lines."""
        from ..logview.document import LogDocument

        return LogDocument(path)

    def explain(self, snapshot: RunSnapshot) -> Explanation:
        """Why its newest attempt ended, and what can be done."""
        from ..launching.explaining import explain

        return explain(snapshot, self.environ, self.home.arguments)

    def launcher(self) -> Launcher:
        """Saved profiles and the forms made from them."""
        from ..launching.drafts import Launcher

        return Launcher(self.home, self.environ, self._cwd, self.actions, self.clock)

    def placed_launcher(self) -> Any:
        """:meth:`launcher`, with a field for the machine if others are known; see :class:`.PlacedLauncher`.

        Raises:
            UsageError: the settings have mistakes.
        """
        return self._placed(self.launcher(), None, "local")

    def _placed(self, near: Any, far: Any, at: str) -> Any:
        names = self.machines()
        if len(names) < 2:
            return near
        near.schedulers = tuple(dict.fromkeys([*near.schedulers, "slurm"]))  # another machine may have it
        from .placing import PlacedLauncher
        from .sending import sender

        hosts = self.settings().hosts
        return PlacedLauncher(
            near, far, names, at, lambda source, to: sender(source, to, hosts, self.home, self.environ)
        )

    def settings(self) -> Settings:
        """What ``settings.toml`` says.

        Raises:
            UsageError: it has mistakes.
        """
        from ..settings import load_settings

        return load_settings(self.home)

    def details(self, snapshot: RunSnapshot) -> tuple[Section, ...]:
        """What is known about a run besides its numbers."""
        from ..runs.details import details

        return details(snapshot)

    def looked_into(self, runs: Sequence[RunSnapshot]) -> list[RunSnapshot]:
        """Snapshots from the list, with their checkpoints and what can be done with each."""
        from ..launching.record import looked_into

        return looked_into(runs)

    def table(self, snapshot: RunSnapshot) -> Table:
        """All points of a run, not thinned."""
        from ..sharing import export

        return export.table_of(self._read_again(snapshot, export.MOST_POINTS))

    def in_detail(self, snapshots: Sequence[RunSnapshot]) -> list[RunSnapshot]:
        """Runs as they are now, with as many points of their curves as one page shows."""
        from ..sharing.page import columns_for

        columns = columns_for(sum(len(one.series) for one in snapshots))
        return [self._read_again(one, columns) for one in snapshots]

    def _read_again(self, snapshot: RunSnapshot, columns: int) -> RunSnapshot:
        from ..runs.monitor import Monitor

        monitor = Monitor(self.home, columns=columns)
        is_watched = snapshot.is_elsewhere or not snapshot.is_ours
        return monitor.snapshot(monitor.watch(Path(snapshot.run)) if is_watched else snapshot.run)

    def window_reader(self, snapshot: RunSnapshot, window: Window) -> WindowReader:
        """A reader of a part of a run's curves, point for point."""
        from ..runs.window import WindowReader

        return WindowReader(snapshot, window, self._stretches)

    def image(self, snapshot: RunSnapshot, wanted: Wanted) -> Seen:
        """One of the images that a run has logged, and which others there are."""
        from ..runs.gallery import gallery_of
        from ..runs.logged import seen_item

        return seen_item(gallery_of(snapshot), wanted)

    @cached_property
    def _stretches(self) -> Stretches:
        from ..runs.window import Stretches

        return Stretches()

    @property
    def watched_folder(self) -> Path | None:
        """The folder that changes whenever a run does; None if there is none."""
        return self.home.runs

    # -- queues, whose changes are made at once, under the group's own lock

    def paused_queues(self) -> tuple[str, ...]:
        """Paused queues, including empty ones."""
        if not self.home.queue.exists():
            return ()
        from ..runs.queueing import paused_groups

        return paused_groups(self.home)

    def move_in_queue(self, snapshot: RunSnapshot, direction: str, call: str = "") -> Moved:
        """Move a queued run ``up`` or ``down`` by one place, only once for the same ``call``."""
        from ...wire.rundir import RunDir
        from ..runs.queueing import move_run

        return move_run(self.home, RunDir(snapshot.dir), direction, call)

    def pause_queue(self, group: str, paused: bool) -> Queue:
        """Pause a queue, or resume it."""
        from ..runs.queueing import set_paused

        return set_paused(self.home, group, paused)

    # -- the list

    def list_view(self) -> ListView:
        """The list's view as it was last left."""
        from ..runs.listing import load_view

        return load_view(self.home)

    def keep_list_view(self, view: ListView) -> None:
        """Remember the list's view.

        Raises:
            OperationError: it could not be kept.
        """
        from ..runs.listing import save_view

        save_view(self.home, view)

    def likely_program(self) -> str:
        """The name of a program in the current folder that may train something."""
        found = sorted(self._cwd.glob("*train*.py"))
        return found[0].name if found else "train.py"

    # -- what people say about runs

    def label(self, snapshots: Sequence[RunSnapshot], what: str, before: str, text: str) -> None:
        """Store a ``note``, a ``name`` or ``tags``; ``text`` is what a person made of the text ``before``.

        Raises:
            UsageError: it is too long, or not a tag. OperationError: it could not be kept.
        """
        from ...wire.rundir import RunDir
        from ..runs import labelling

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
        from ..runs.removal import Remover

        return Remover(self.home)

    def examine_removal(self, snapshot: RunSnapshot) -> Removable:
        """What removing a run would delete.

        Raises:
            OperationError: it must stay.
        """
        from ...wire.rundir import RunDir

        return self._remover.examine(RunDir(snapshot.dir))

    def remove(self, snapshot: RunSnapshot, *, keep_checkpoints: bool) -> Removed:
        """Delete a run, and what an interrupted removal left.

        Raises:
            OperationError: it must stay after all.
        """
        from ...wire.rundir import RunDir
        from .staging import remove_abandoned

        self._remover.clean_up()
        remove_abandoned(self.home)
        return self._remover.remove(RunDir(snapshot.dir), keep_checkpoints=keep_checkpoints)

    def removed_before(self, run: str) -> Removed:
        """The result of a removal whose process has died since."""
        self._remover.clean_up()
        return self._remover.removed_before(run)
