"""Where a run's numbers come from: its heartbeat and metrics, then files its profile names, then its output."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...wire.rundir import AttemptDir, RunDir
from ..follow.file import Budget
from ..model.snapshot import Numbers, SeriesView
from ..series.store import SeriesStore
from .beating import Beating
from .external import ExternalMetrics, LogNotes
from .numbers import combine, with_printed
from .pace import Pace
from .points import PointReader
from .printed import PrintedCurves
from .witness import Machine, WitnessReader

LIST_NAMES = frozenset({"loss"})


class Sources:
    """The files of one run that hold numbers, followed through its attempts."""

    def __init__(self, run: RunDir, machine: Machine, notes: LogNotes | None = None) -> None:
        """``notes``: what is known of its log from an earlier look, for a list without curves."""
        self.run = run
        self.machine = machine
        self._notes = notes
        self.pace = Pace()
        self.beating = Beating(run, machine, self.pace)
        self.points = PointReader(run.metrics)
        self.external: ExternalMetrics | None = None
        self._earlier: list[ExternalMetrics] = []
        self._printed = PrintedCurves()
        self._attempt = 0
        self._output: Path | None = None
        self._output_changed: float | None = None
        self._pattern: str | None = None
        self._launched = 0.0
        self._ended = False
        self._owed = False
        self._known = False

    def follow_attempt(self, attempt: int, folder: AttemptDir) -> None:
        """Turn to the files of the newest attempt (0: there is none yet) and read its heartbeat."""
        if attempt != self._attempt:
            self.pace.begin_attempt()
            self.beating.begin_attempt(attempt, folder)
            self._attempt, self._output = attempt, folder.output
        self.beating.read()

    def follow(self, witnesses: WitnessReader) -> None:
        """Turn to the files that the profile names."""
        spec, launch = witnesses.spec.value, witnesses.launch.value
        self._ended = witnesses.exit.value is not None
        self._launched = launch.time if launch else 0.0
        watch = spec.watch if spec else {}
        if spec is None or not watch:
            return
        folder = Path(spec.launch.cwd)
        self._pattern = watch.get("pattern")
        self.beating.watch(_inside(folder, watch.get("heartbeat")), self._launched)
        other = _inside(folder, watch.get("metrics") or watch.get("log"))
        if other is not None and (self.external is None or self.external.path != other):
            self.external = self._opened(other)

    def read(self, *, full: bool, budget: Budget) -> None:
        """Take in what was added since the last look.

        Of a run that has ended, the list shows its records first and its numbers when there is time.
        """
        self._stat_output()
        self._owed = self._ended and not full and budget.spent and not self._known
        if self._owed:
            return
        self._known = True
        self.pace.feed(self.points.read_newest() if full or not self._ended else (), self._attempt)
        if full:
            self.points.sketch()
            self.points.read_history(budget)
        else:
            self.points.sketch(LIST_NAMES)
        external = self._needed_external()
        if external is not None and full:
            external = self._continued(external)
        if external is not None and self._owes(external) and not budget.spent:
            self._read_external(external, budget)

    def read_on(self, budget: Budget) -> None:
        """Go on with the history alone, once a full :meth:`read` has begun it."""
        self.points.read_history(budget)
        if self.external is not None and self._owes(self.external):
            self._read_external(self.external, budget)

    @property
    def owed_bytes(self) -> int:
        """How much of the history is still to be read by this process."""
        outputs = [*self._earlier, *([self.external] if self.external is not None else [])]
        return self.points.owed_bytes + sum(one.pending_bytes for one in outputs)

    @property
    def complete(self) -> bool:
        """Whether the curves hold every point."""
        if self.external is None:
            return self.points.complete
        return self.points.complete and self.external.complete and all(one.complete for one in self._earlier)

    @property
    def caught_up(self) -> bool:
        """Whether the numbers of the list have been read."""
        return not self._owed and (self.external is None or self.external.complete)

    def exhausted(self, full: bool) -> bool:
        """Whether, in a run that has ended, there is nothing more to read for this view."""
        return self.complete if full else self.caught_up

    def drop_history(self) -> None:
        """Give back what only the full view needs."""
        self.points.drop_history()

    def numbers(self) -> Numbers:
        """The newest numbers."""
        printed: Mapping[str, Any] = self.external.newest if self.external is not None else {}
        found = combine(self.beating.beat, self.beating.older, self.points.newest or printed)
        return with_printed(found, printed)

    def views(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Curves by metric name."""
        found = self.points.views(names, **options)
        if self.external is None:
            return found
        printed = self.external.views(names, **options)
        return self._printed.beside(found, printed) if found else printed

    @property
    def output(self) -> Path | None:
        """The newest attempt's output, when it exists."""
        return self._output if self._output_changed is not None else None

    @property
    def output_changed(self) -> float | None:
        """When this attempt's output or metrics last grew, Unix seconds; None: it has written nothing."""
        return max((moment for moment in self._moments() if moment >= self._launched), default=None)

    @property
    def has_steps(self) -> bool:
        """Whether this attempt has told of a step, an epoch or a loss."""
        if self.pace.progress.step is not None or (self.external is not None and self.external.newest):
            return True
        file, beat = self.beating.file, self.beating.beat
        if file is None or beat is None:
            return False
        return not file.ours or bool(beat.step) or beat.loss is not None

    @property
    def updated(self) -> float | None:
        """The run's last sign of life, Unix seconds."""
        beat = self.beating.beat
        return max((*self._moments(), *((beat.time,) if beat else ())), default=None)

    @property
    def told_by(self) -> str | None:
        """The name of the file that the numbers come from."""
        file = self.beating.file
        if file is not None:
            return "heartbeat" if file.ours else file.path.name
        if self.points.newest:
            return self.run.metrics.name
        return self.external.source if self.external and self.external.newest else None

    def _moments(self) -> list[float]:
        """When what it prints was last written."""
        files = (self._output_changed, self.points.changed_at, self.external.file.changed_at if self.external else None)
        return [moment for moment in files if moment is not None]

    def _needed_external(self) -> ExternalMetrics | None:
        """What to read beside our own files: the profile's file, or the output where nothing else tells numbers.

        The agent in a program that knows nothing of us sees steps and losses, but no epochs: those are printed alone.
        """
        output = self._output
        if self.external is None:
            beat, newest = self.beating.beat, self.points.newest
            told = newest.get("epoch") is not None or (beat is not None and beat.epoch is not None)
            if output is not None and self._output_changed is not None and not told:
                self.external = self._opened(output)
        elif output is not None and self.external.path != output and self.run.path in self.external.path.parents:
            self.external, self._earlier = self._opened(output), []
        return self.external

    def _opened(self, path: Path) -> ExternalMetrics:
        found = ExternalMetrics(path, self.machine.clock, self._pattern)
        note = self._notes.find(self.run.run, path, self._pattern) if self._notes is not None else None
        if note is not None:
            found.recall(note)
        return found

    def note(self) -> None:
        """Keep what was read of its log for the next look; what its reader stumbled over is read anew."""
        note = self.external.note() if self.external is not None else None
        if self._notes is not None and self.external is not None and note is not None:
            self._notes.keep(self.run.run, self.external.path, self._pattern, note)

    def _continued(self, external: ExternalMetrics) -> ExternalMetrics:
        """The attempt's output as the continuation of the outputs before it: one curve, read from the first on.

        What the list knew of it stays until that has come as far.
        """
        if external.path != self._output or self._attempt < 2 or len(self._earlier) == self._attempt - 1:
            return external
        store, clock = SeriesStore(), self.machine.clock
        self._earlier = [
            ExternalMetrics(self.run.attempt(number).output, clock, self._pattern, attempt=number, store=store)
            for number in range(1, self._attempt)
        ]
        self.external = ExternalMetrics(external.path, clock, self._pattern, attempt=self._attempt, store=store)
        self.external.show(external.newest)
        return self.external

    def _owes(self, external: ExternalMetrics) -> bool:
        """Look whether it has grown, or one of those before it is still to be read: this attempt's may be empty."""
        return external.poll() or any(one.poll() for one in self._earlier)

    def _read_external(self, external: ExternalMetrics, budget: Budget) -> None:
        external.preview()
        for one in self._earlier:
            if one.poll():
                one.read(budget)
            if not one.complete:
                return
        records = external.read(budget)
        if self.pace.beaten or self.points.newest:
            self.pace.feed_epochs(records)
        else:
            self.pace.feed(records, None)

    def _stat_output(self) -> None:
        try:
            self._output_changed = os.stat(self._output).st_mtime if self._output else None  # noqa: PTH116 - cheaper
        except OSError:
            self._output_changed = None


def _inside(folder: Path, name: str | None) -> Path | None:
    """A file that a profile names, relative to the folder its program runs in."""
    if not name:
        return None
    try:
        return folder / Path(name).expanduser()
    except RuntimeError:
        return folder / name  # the home of a user that this machine does not know
