"""The rows of `mpstui ps`. An ended run's row is cached until one of its files changes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from ..core import present as shown
from ..core.model.home import Home
from ..core.model.reader_version import reader_version
from ..wire import liveness, storage
from ..wire.rundir import RunDir, run_dirs
from ..wire.storage import UnreadableRecord

if TYPE_CHECKING:
    from ..core.model.snapshot import RunSnapshot
    from ..core.runs.local_machine import LocalMachine
    from ..core.runs.log_notes import LogNotes
    from ..core.runs.query import Findable

CACHE_SCHEMA = 6


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list."""

    json: dict[str, Any]
    """As documented for ``ps --json``."""
    word: str
    """Its state in a word, for people."""
    loss_is_finite: bool = True
    called: Sequence[str] = ()
    """Words that a filter matches; ``values`` are the numbers and settings for its conditions."""
    values: Mapping[str, str | float | None] = field(default_factory=dict)

    def findable(self) -> Findable:
        from ..core.runs.query import Findable

        return Findable(tuple(self.called), self.values, self.json["started"], self.json["ended"], time.time())


def row_of(snapshot: RunSnapshot) -> Row:
    """Return the row of one run."""
    from ..core.runs.query import findable
    from ..core.runs.report import as_json

    finite, found_by = snapshot.numbers.loss_is_finite, findable(snapshot)
    return Row(as_json(snapshot, full=False), shown.badge(snapshot).word, finite, found_by.words, found_by.values)


def list_rows(home: Home, newest: int | None) -> tuple[list[Row], int]:
    """Return the rows, newest first, and how many older ended runs were left out.

    Args:
        newest: list this many, and older runs only while they are active; None lists all.
    """
    runs = run_dirs(home.runs)
    listed = [run for place, run in enumerate(runs) if newest is None or place < newest or seems_active(run)]
    cache = RowCache(home.state / "cache")
    rows = [cache.row(run) for run in listed]
    cache.write({run.run for run in runs})
    return rows, len(runs) - len(listed)


def seems_active(run: RunDir) -> bool:
    """True if a run may be active: a lock is held, or it could not be stopped; also True in doubt."""
    try:
        if any(map(liveness.is_held, (run.supervisor_lock, run.run_lock, run.moving_lock))):
            return True
        return b"stop_failed" in storage.read_bytes(run.status)
    except FileNotFoundError:
        return False
    except OSError:
        return True


class RowCache:
    """Rows of ended runs, each with the stamps of the files it was read from, and notes on how far logs were read.

    Losing it costs only time: with 50 short runs, `ps` takes 0.33 s of CPU time instead of 0.15 s. The first line is a
    checksum of the rest: a damaged row would be shown as if it were true.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._notes_path = folder / "ps.cache", folder / "logs.json"
        self._changed = False
        self._rows: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, UnreadableRecord):
            told, _, text = storage.read_bytes(self._path).partition(b"\n")
            found = storage.load_object(text) if int(told, 16) == crc32(text) else {}
            if (found.get("schema"), found.get("version")) == (CACHE_SCHEMA, reader_version()):
                self._rows = found["rows"]

    def row(self, run: RunDir) -> Row:
        """Return the cached row if none of its files has changed; only other rows need the readers to be imported."""
        found = self._rows.get(run.run)
        if found and found["stamps"] == _stamps(run, found["row"]["json"]["attempt"]):
            return Row(**found["row"])
        from ..core.follow import Budget
        from ..core.runs.reader import RunReader

        numbers = run.attempt_numbers()
        stamps = _stamps(run, numbers[-1] if numbers else 0)  # taken before reading
        reader = RunReader(run, self._machine, self._notes)
        snapshot = reader.refresh(full=False, budget=Budget(1.0))  # seconds: enough for the end of any log
        row = row_of(snapshot)
        watches_others = bool(reader.witnesses.spec.value and reader.witnesses.spec.value.watch)
        if reader.witnesses.settled and reader.caught_up and not watches_others:
            fields = {one.name: getattr(row, one.name) for one in dataclass_fields(row)}  # asdict copies deeply
            self._rows[run.run] = {"stamps": stamps, "row": fields}
            self._changed = True
        else:
            reader.note()
        return row

    def write(self, names: Iterable[str]) -> None:
        """Write new rows, and forget runs that are not among ``names``."""
        kept = {name: self._rows[name] for name in names if name in self._rows}
        if self._changed or len(kept) < len(self._rows):
            with contextlib.suppress(OSError):  # a full or read-only disk only makes the next `ps` slower
                storage.make_private_folder(self._path.parent)
                text = storage.dump_bytes({"schema": CACHE_SCHEMA, "version": reader_version(), "rows": kept})
                storage.write_bytes(self._path, b"%08x\n%s" % (crc32(text), text), sync=False)
        if "_notes" in vars(self) or self._notes_path.exists():  # otherwise all rows were cached and no note is stale
            self._notes.write()

    @cached_property
    def _notes(self) -> LogNotes:
        from ..core.runs.log_notes import LogNotes

        return LogNotes(self._notes_path)

    @cached_property
    def _machine(self) -> LocalMachine:
        from ..core.runs.local_machine import LocalMachine

        return LocalMachine(table=liveness.system_process_table(), boot_id=liveness.boot_id())


def _stamps(run: RunDir, attempt: int) -> list[int]:
    """Return times and sizes of the files behind a row; folders show renames and new attempts."""
    names = ["", "spec.json", "status.json", "metrics.jsonl", "attempts"]
    names += [f"attempts/{attempt}/{name}" for name in ("", "output.log", "heartbeat.json", "exit.json")]
    found = []
    for name in names:
        try:
            status = os.stat(f"{run.path}/{name}")  # noqa: PTH116 - called thousands of times; Path would triple it
            found += [status.st_mtime_ns, status.st_size]
        except OSError:
            found += [0, 0]
    return found
