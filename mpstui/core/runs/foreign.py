"""Numbers of a program that knows nothing of us: read from its output or from a metric file of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..follow.budget import Budget, hundredths
from ..model.snapshot import SeriesView
from ..series.store import SeriesStore
from .backlog import Backlog, BacklogStarter, Owed
from .foreign_files import PREVIEW_BYTES, ConsoleFile, FileReader, open_reader
from .notes import LogNote

if TYPE_CHECKING:
    from ..formats.points import MetricPoint, Point, Stretch

PREVIEW_POINTS = 200
_MAY_BE_UNKNOWN = ("loss", "steps")
"""What a later point says of these counts also where it says that it is not known."""
RUNNING_BEHIND_BYTES = 1 << 18
"""A file that is being written is always a little ahead: up to this its curves pass for whole."""
LEFT_OVER_BYTES = 1 << 25
"""More than a file can have grown by while the last message of another process was on its way."""
RUNS_PER_ATTEMPT = 1000
"""Numbers apart: one output may hold several runs one after the other."""


class ForeignPoints:
    """Follows one log or metric file through the readers of formats.

    ``newest`` has the keys of a metrics record, plus the plan (``epochs``, ``steps``, ``epoch_step`` ...).
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float],
        pattern: str | None = None,
        *,
        attempt: int = 0,
        store: SeriesStore | None = None,
    ) -> None:
        """``store`` continues the curves of earlier attempts, which must have been read into it completely."""
        self.path = path
        self.newest: dict[str, Any] = {}
        self.changed_at: float | None = None
        """When the file was last written, Unix seconds; None: there is no file."""
        self._clock = clock
        self._pattern = pattern
        self._identity: tuple[int, int] | None = None
        self._size = 0
        self._was_gone = False
        self._reader: FileReader | None = None
        self.unreadable = False
        """Whether opening it was tried, and failed."""
        self._previewed = False
        self._store = store if store is not None else SeriesStore()
        self._attempt = attempt
        self._first_run = attempt * RUNS_PER_ATTEMPT
        self._backlog: Backlog | None = None
        self._read_here = False
        """What was to be read elsewhere came back too early: that is not tried again."""

    @property
    def complete(self) -> bool:
        """Whether all of the file has been read."""
        return self._size == 0 or (self._reader is not None and self._reader.read_bytes >= self._size)

    @property
    def owed_bytes(self) -> int:
        """How much of the file is still to be read."""
        return max(0, self._size - (self._reader.read_bytes if self._reader is not None else 0))

    @property
    def behind(self) -> bool:
        """Whether its curves do not pass for whole: far from the end, or nothing of it has been read."""
        if self.unreadable:
            return False
        untouched = self._reader is None or not self._reader.read_bytes
        return self.owed_bytes > RUNNING_BEHIND_BYTES or (untouched and not self.complete)

    @property
    def owed_here_bytes(self) -> int:
        """How much of it is to be read by this process."""
        return 0 if self._backlog is not None else self.owed_bytes

    @property
    def source(self) -> str:
        """The file's name, and what its reader stumbled over."""
        failure = self._reader.failure if self._reader else None
        return f"{self.path.name} (in part: {failure})" if failure else self.path.name

    def look(self) -> bool:
        """Stat the file; True when there is something to read."""
        try:
            found = self.path.stat()
        except OSError as error:
            self.changed_at = None
            self._was_gone = self._was_gone or isinstance(error, FileNotFoundError)
            return False
        identity = (found.st_dev, found.st_ino)
        # A file that takes the place of a deleted one may get its inode, and be as long.
        if self._was_gone or self._identity not in (None, identity) or found.st_size < self._size:
            self._forget()
        self._was_gone = False
        self._identity, self.changed_at, self._size = identity, found.st_mtime, found.st_size
        return not self.complete

    def delegate(self, start: BacklogStarter) -> None:
        """Have a long backlog read elsewhere; :meth:`read` takes over what is learned there."""
        if self._backlog is not None or self._read_here or not self.look():
            return
        self.preview()
        if isinstance(self._reader, ConsoleFile):
            owed = Owed(self.path.absolute(), self._pattern, self._attempt, self.owed_bytes)
            self._backlog = start(owed, self.memory)

    def memory(self) -> dict[str, Any]:
        """All that another one of the same file needs to go on from here."""
        if self._reader is None:
            self._reader = open_reader(self.path, self._pattern)
        file = self._reader.memory() if isinstance(self._reader, ConsoleFile) else None
        return {"file": file, "store": self._store, "newest": self.newest}

    def resume(self, memory: Mapping[str, Any]) -> None:
        """Go on where another one stopped; what it has learned is taken over, not copied."""
        if not isinstance(self._reader, ConsoleFile):
            self._reader = ConsoleFile(self.path, self._pattern)
        self._reader.resume(memory["file"])
        self._store = memory["store"]
        if not self._previewed:
            self.newest = memory["newest"]

    def recall(self, note: LogNote) -> None:
        """Begin where an earlier process stopped, without the curves up to there: for a list that shows none."""
        self._reader = reader = ConsoleFile(self.path, self._pattern, note)
        self._identity, self._size = note.identity, note.read_bytes
        self.newest.update(note.newest)
        if self.look() and self.owed_bytes > PREVIEW_BYTES:
            self._preview(reader)

    def show(self, newest: Mapping[str, Any]) -> None:
        """Show these numbers of the same file, which another one has read, until this one has come to its end."""
        self.newest.update(newest)
        self._previewed = bool(newest)

    def note(self) -> LogNote | None:
        """What the next process can begin with; None where it has to read anew (a metric file, one that is gone)."""
        reader = self._reader
        if not isinstance(reader, ConsoleFile) or reader.failure or self._identity is None:
            return None
        return LogNote(identity=self._identity, read_bytes=reader.read_bytes, newest=self.newest, memory=reader.memory)

    def preview(self) -> None:
        """Understand the end of a long file first."""
        if self._reader is None:
            self._reader = open_reader(self.path, self._pattern)
            self.unreadable = self._reader is None
            if self._reader is not None:
                self._preview(self._reader)

    def read(self, budget: Budget) -> list[Mapping[str, Any]]:
        """Read on; returns the records that are new at the end of the file (not those of an old backlog)."""
        self.preview()
        if self._reader is None or self._is_read_elsewhere(budget):
            return []
        fresh: list[Mapping[str, Any]] = []
        while self._reader.read_bytes < self._size:
            live = self._reader.read_bytes > 0
            points = self._reader.read(self._size)
            records = self._take(points, timed=live and self._reader.read_bytes >= self._size)
            if not self._previewed or self._reader.read_bytes >= self._size:
                self._remember(records)
                fresh.extend(records)
            if budget.spent:
                break
        return fresh

    def views(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Curves by name; the one to chart is called ``loss``."""
        complete = self.owed_bytes <= RUNNING_BEHIND_BYTES
        share = 1.0 if complete else hundredths(self._size - self.owed_bytes, self._size)
        return self._store.views(names, complete=complete, read_share=share, **options)

    def _is_read_elsewhere(self, budget: Budget) -> bool:
        """Take over what was learned there, for as long as the budget allows; False when it is this one's turn."""
        if self._backlog is None:
            return False
        while not self._backlog.over:
            learned = self._backlog.newest(budget)
            if learned is not None:
                self.resume(learned)
            if budget.spent:
                return True
        self._end_backlog()
        self._read_here = self.owed_bytes > LEFT_OVER_BYTES
        return False

    def _end_backlog(self) -> None:
        if self._backlog is not None:
            self._backlog.close()
            self._backlog = None

    def _preview(self, reader: FileReader) -> None:
        points = reader.preview(self._size)
        self._previewed = self._previewed or bool(points)
        for point in points[-PREVIEW_POINTS:]:
            self.newest.update(_known(point.newest, leads=True))

    def _take(self, points: Sequence[Point], *, timed: bool) -> list[Mapping[str, Any]]:
        """What is new, for the curves; returns records, of many points that came as columns the newest.

        The moment of arrival is a point's time only where it arrived while we looked.
        """
        from ..formats.points import Stretch

        moment = self._clock() if timed else None
        primary = self._reader.primary if self._reader else None
        records: list[Mapping[str, Any]] = []
        waiting: list[Mapping[str, Any]] = []
        for point in points:
            newest = point.newest
            leads = primary is None or newest.series == primary
            record = {"time": moment, "attempt": self._first_run + newest.run, **_record(newest, leads=leads)}
            records.append({**record, **_known(newest, leads=leads)})
            if isinstance(point, Stretch):
                self._store.add(waiting)
                waiting = []
                self._add_stretch(point, leads=leads, moment=moment)
            else:
                waiting.append(record)
        self._store.add(waiting)
        return records

    def _add_stretch(self, stretch: Stretch, *, leads: bool, moment: float | None) -> None:
        columns = {"loss": stretch.losses} if leads else {}
        if stretch.rates is not None:
            columns["lr"] = stretch.rates
        for name, values in stretch.values.items():
            if name != "loss":
                columns.setdefault(name, values)
        self._store.add_columns(
            self._first_run + stretch.newest.run,
            columns,
            steps=stretch.steps,
            epochs=stretch.epochs,
            times=[math.nan if moment is None else moment] * len(stretch.losses),
        )

    def _remember(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            self.newest.update(
                {name: value for name, value in record.items() if value is not None or name in _MAY_BE_UNKNOWN}
            )

    def _forget(self) -> None:
        self._end_backlog()
        self._read_here = False
        self._reader, self._store, self._previewed = None, SeriesStore(), False
        self.newest.clear()


def _record(point: MetricPoint, *, leads: bool) -> dict[str, Any]:
    """A record for the curves. Non-finite values travel as they are: the curve shows them as gaps."""
    record: dict[str, Any] = {"epoch": point.counters.epoch, "step": point.run_step}
    if point.loss is not None and leads:
        record["loss"] = point.loss
    if point.learning_rate is not None:
        record["lr"] = point.learning_rate
    values = {**point.metrics, **point.eval_metrics}
    # "loss" is the curve of the series that leads: the same word in another series is another quantity.
    record.update({name: value for name, value in values.items() if name not in record and name != "loss"})
    return record


def _known(point: MetricPoint, *, leads: bool) -> dict[str, Any]:
    """What a point says of where the run stands; what it does not say is left out."""
    counters = point.counters
    found = {
        "epoch": counters.epoch,
        "epochs": counters.epochs,
        "step": counters.step,
        "steps": counters.steps,
        "epoch_step": counters.epoch_step,
        "epoch_steps": counters.epoch_steps,
        "loss": point.loss if leads else None,
        "lr": point.learning_rate,
    }
    known: dict[str, Any] = {name: value for name, value in found.items() if value is not None}
    if counters.step is None and counters.epoch_step is not None:
        known["steps"] = None  # what was taken for the plan of the run, if anything was, is that of an epoch
    return {**known, "epoch_done": point.epoch_done, "first_epoch": point.first_epoch}
