"""Follows what mpstui did not start: a log, a metric file, a heartbeat, or a folder of such files."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...wire import storage
from ...wire.secrets import masked
from ..follow import Budget
from ..model.snapshot import Numbers, RunSnapshot, State
from ..present import epoch_shown, span
from ..series.series import SeriesStore
from .external import ExternalMetrics
from .foreign_reader import ForeignReader
from .local_machine import LocalMachine
from .planned import asked_totals
from .signs import Condition

HEARTBEAT_NAMES = ("heartbeat.json", "*heartbeat*.json", "status.json")
LOG_NAMES = ("output.log", "*.log", "*.out", "*.txt")
NAMES_IN_SHORT = ".log .out .txt .csv .jsonl tfevents, heartbeat or trainer_state"
"""What is looked for in a folder, short enough for a line of 80 columns."""
_EVENTS = "tfevents"
HISTORY_BYTES = 1 << 14
FIND_SECONDS = 2.0
"""How often to look for files: they may appear in a folder later."""
LAST_WORDS_SECONDS = 10.0
"""A failing program writes its last heartbeat and its traceback within this time, in either order."""


class WatchedReader(ForeignReader):
    """Follows files by their content alone; nothing proves whether their program still runs, so nothing is claimed."""

    def __init__(self, path: Path, machine: LocalMachine, columns: int | None = None) -> None:
        super().__init__(machine, path, columns)
        self.path = path
        self._log: Path | None = None
        self._log_seen: tuple[Path, tuple[int, int, int] | None] | None = None
        """Which log, and its stamp when its end was last read."""
        self._log_end: str | None = None
        self._points: tuple[object, Path | None] = (None, None)
        """The state of the files that may hold metrics, and the file that was chosen."""
        self._arguments: Mapping[str, str] = {}
        """The configuration in its metric file, secrets masked."""
        self._find_at: float | None = None
        self._was_there = False

    def _refreshed(self, full: bool, budget: Budget) -> RunSnapshot:
        self._find_files()
        self._read_external(budget, anyway=full)
        self._full, self._outdated = full, False
        return self._compose(full)

    def _unreadable(self, why: str) -> RunSnapshot:
        return RunSnapshot(
            run=str(self.path),
            name=self.path.name,
            dir=self.path.parent,
            state=State.WATCHED,
            reason=why,
            seen=self.machine.clock(),
            brief=not self._full,
        )

    def rest(self) -> None:
        """Keep the curves: they exist nowhere else."""

    def _find_files(self) -> None:
        now = self.machine.monotonic()
        if self._find_at is None or now >= self._find_at:
            self._find_at = now + FIND_SECONDS
            folder, json = self.path.is_dir(), self.path.suffix == ".json"
            beat = _newest(self.path, HEARTBEAT_NAMES) if folder else None
            beat = self.path if json and not folder and not _is_history(self.path) else beat
            self._log = (
                _newest(self.path, LOG_NAMES) if folder else None if json or _is_binary(self.path) else self.path
            )
            points = self._metrics_of(beat) if folder else None if beat else self.path
            self.heartbeats.follow(beat)
            if points is not None and (self.external is None or self.external.path != points):
                self.external = self._reading(points)
        else:
            self.heartbeats.follow(None)

    def _metrics_of(self, beat: Path | None) -> Path | None:
        """Return the folder's best metric file, as `mpstui parse` chooses it; chosen again when there are new files.

        For one of several event files in a folder, return the folder: a resumed program begins another file.
        """
        from ..formats.files import best_of, find_sources, newest_of

        sources, found = [path for path in find_sources(self.path) if path != beat], self._points[1]
        for _ in range(2):  # a file without numbers may contain some once it has grown
            newest = newest_of(sources)
            told = storage.stat_of(newest) if newest is not None and newest != found else None
            grown = told.st_size.bit_length() if told is not None else 0  # look into it whenever its size has doubled
            known = sorted((str(path), None if found else storage.stamp(path)) for path in sources), newest, grown
            if known != self._points[0]:
                found = best_of(sources)
                self._points = known, found
        if found is None or _EVENTS not in found.name:
            return found
        from ..formats.stores.tensorboard import event_files

        beside = event_files(found.parent)
        return found.parent if found in beside and len(beside) > 1 else found

    def _reading(self, points: Path) -> ExternalMetrics:
        store = SeriesStore(capacity=self.capacity)
        if not points.is_dir():
            return ExternalMetrics(points, self.machine.clock, store=store)
        from ..formats.stores.tensorboard import EventRun
        from .stored_metrics import metrics_of_run

        return metrics_of_run(EventRun(points), self.machine.clock, store)

    def _compose(self, full: bool) -> RunSnapshot:
        updated, there = self._updated(), self.path.exists()
        exception = self._exception(updated)
        self._was_there = self._was_there or there
        told = self.external.settings if self.external is not None else {}
        if len(told) != len(self._arguments):
            self._arguments = masked(told)
            self._asked = {**asked_totals((), told), **(self._asked or {})}
        condition = self._foreign_condition(ended=exception is not None or updated is None)
        numbers = self._numbers(moving=condition.moves)
        numbers = replace(numbers, done=numbers.done or self._has_every_epoch(numbers))
        if numbers.done:
            condition = Condition(None)  # silence after the end means nothing
        return RunSnapshot(
            run=str(self.path),
            name=self.path.name,
            dir=self.path if self.path.is_dir() else self.path.parent,
            state=State.WATCHED,
            reason=self._reason(updated, there),
            seen=self.machine.clock(),
            health=condition.health,
            health_note=condition.note,
            numbers=numbers,
            updated=updated,
            series=self._curves(full, numbers.told_by),
            output=self._log,
            readers=self._main_source(),
            loading=self.external is not None and self.external.behind,
            brief=not full,
            unread=self.unread,
            kept=self.external.kept if full and self.external is not None else (),
            settings=self._arguments,
            log_exception=exception,
            gone=self._was_there and not there,
            silent=condition.silent and condition.health is None,
            ended=updated if self.writes is False and condition.health is None else None,
        )

    def _has_every_epoch(self, numbers: Numbers) -> bool:
        """True if a table with one row per completed epoch has as many rows as epochs are planned."""
        if self.external is None or self.external.metric_file is None or numbers.epochs is None:
            return False
        if (numbers.step, numbers.epoch_step) != (None, None) or epoch_shown(numbers) != numbers.epochs:
            return False
        counts = (view.count for view in self.external.views(most=1).values() if view.axis == "epoch")
        return max(counts, default=0) == numbers.epochs

    def _written_files(self) -> Sequence[Path]:
        others = self._log, self.heartbeats.followed
        return (*super()._written_files(), *(path for path in others if path is not None))

    def _exception(self, updated: float | None) -> str | None:
        """Return the exception at the end of the log, unless a heartbeat or metric file shows life after it."""
        written = _modified(self._log) if self._log is not None else None
        if self._log is None or written is None or updated is None or updated > written + LAST_WORDS_SECONDS:
            return None
        now = self._log, storage.stamp(self._log)
        if now != self._log_seen:
            self._log_seen, self._log_end = now, _exception(self._log)
        return self._log_end

    def _reason(self, updated: float | None, there: bool) -> str:
        if not there:
            return f"there is no {self.path.name} (any more)"
        if self.external is not None and self.external.unreadable:
            return f"{self.external.path.name} cannot be read"
        if updated is None:
            if not self.path.is_dir():
                return "nothing that could be read is there yet"
            return f"{self._log.name} tells no numbers yet" if self._log else f"there is no {NAMES_IN_SHORT}"
        return f"not started by mpstui; {written_ago(self.machine.clock() - updated)}"


def written_ago(seconds: float) -> str:
    """Return ``last written 5 min ago``, in whole minutes: seconds would force a redraw every second."""
    minutes = int(seconds // 60)
    ago = "less than a minute" if minutes < 1 else f"{minutes} min" if minutes < 60 else span(60 * minutes)
    return f"last written {ago} ago"


def _is_history(path: Path) -> bool:
    """True if a JSON file is a metric file (the Trainer state of transformers) rather than a heartbeat."""
    try:
        with storage.open_file(path) as file:
            return b'"log_history"' in file.read(HISTORY_BYTES)
    except OSError:
        return False


def _is_binary(path: Path) -> bool:
    """True if a file is not text, so not a log. Leading NULs are a hole; UTF-16 starts with a byte order mark."""
    try:
        with storage.open_file(path) as file:
            start = file.read(HISTORY_BYTES).lstrip(b"\0")[:64]
    except OSError:
        return False
    return b"\0" in start and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def _newest(folder: Path, patterns: tuple[str, ...]) -> Path | None:
    """Return the newest file for the first pattern with a match, in the folder or directly below it."""
    for pattern in patterns:
        found = [*folder.glob(pattern), *folder.glob(f"*/{pattern}")][:200]
        dated = [(moment, path) for path in found if (moment := _modified(path)) is not None]
        if dated:
            return max(dated)[1]
    return None


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime if path.is_file() else None
    except OSError:
        return None


TAIL_BYTES = 1 << 15
"""Enough for the tracebacks of several ranks in a row, of which only the last is needed."""
_MARKS = (b"Traceback", "╰─".encode())
"""A tail without these contains no traceback. Only one word of the title: colour codes may separate the others."""


def _exception(path: Path) -> str | None:
    """Return ``RuntimeError: ...`` as printed; None if there is none, or training continues after it."""
    try:
        with storage.open_file(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            data = file.read(TAIL_BYTES)
    except OSError:
        return None
    if not any(mark in data for mark in _MARKS):
        return None
    from ..formats.reader import LogReader

    reader = LogReader()
    reader.feed(data)
    reader.close()
    return reader.standing.failure
