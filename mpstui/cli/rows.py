"""The rows of `mpstui ps`. A run that has settled is told from a cache, as long as not one of its files has changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..core.model.home import Home
from ..wire import liveness, storage
from ..wire.rundir import RunDir
from ..wire.storage import UnreadableRecord

if TYPE_CHECKING:
    from ..core.runs.notes import LogNotes

CACHE_SCHEMA = 1
_READ_SECONDS = 1.0
"""What one run may take: enough for any log's end; a longer history is not needed for one row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run as `ps` tells it."""

    json: dict[str, Any]
    """As documented for ``ps --json``."""
    word: str
    """What it is doing, for people."""
    loss_is_finite: bool = True

    def to_json(self) -> dict[str, Any]:
        """As the cache keeps it. (``asdict`` copies deeply, which is a tenth of the time of a cold cache.)"""
        return {"json": self.json, "word": self.word, "loss_is_finite": self.loss_is_finite}


def list_rows(home: Home, newest: int | None) -> tuple[list[Row], int]:
    """The rows, newest first, and how many older ones that have ended were left out.

    Args:
        newest: how many to tell in any case; runs beyond it only while something of them lives. None: all.
    """
    runs = _run_dirs(home.runs)
    shown = [run for place, run in enumerate(runs) if newest is None or place < newest or seems_active(run)]
    cache = RowCache(home.state / "cache" / "ps.json")
    rows = _Rows(cache, home.state / "cache" / "logs")
    found = [rows.row(run) for run in shown]
    cache.keep({run.run for run in runs})
    rows.forget_others()
    return found, len(runs) - len(shown)


def seems_active(run: RunDir) -> bool:
    """Whether something of a run may live: a lock is held, or it could not be stopped. Errs towards yes."""
    try:
        if liveness.is_held(run.supervisor_lock) or liveness.is_held(run.run_lock):
            return True
        return b"stop_failed" in run.status.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True


class RowCache:
    """Rows of settled runs by id, each with the stamps of the files it was told from. Losing it costs time alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = False
        self._rows: dict[str, Any] = {}
        with contextlib.suppress(OSError, UnreadableRecord):
            found = storage.read_json(path) or {}
            if (found.get("schema"), found.get("version")) == (CACHE_SCHEMA, __version__):
                self._rows = found.get("rows") or {}

    def get(self, run: RunDir) -> Row | None:
        """The row, when every file it was told from is as it was."""
        found = self._rows.get(run.run)
        if not found or found["stamps"] != _stamps(run, found["row"]["json"]["attempt"]):
            return None
        return Row(**found["row"])

    def put(self, run: RunDir, row: Row, stamps: list[int]) -> None:
        """Remember a settled run's row; ``stamps`` were taken before it was read."""
        self._rows[run.run] = {"stamps": stamps, "row": row.to_json()}
        self._changed = True

    def keep(self, names: Iterable[str]) -> None:
        """Forget runs that are gone, and write what is new."""
        kept = {name: self._rows[name] for name in names if name in self._rows}
        if self._changed or len(kept) < len(self._rows):
            with contextlib.suppress(OSError):  # a full or read-only disk: the next `ps` takes longer, that is all
                storage.make_private_folder(self._path.parent)
                record = {"schema": CACHE_SCHEMA, "version": __version__, "rows": kept}
                storage.write_json(self._path, record, sync=False)


class _Rows:
    """Tells rows, loading the readers only when a run is not in the cache."""

    def __init__(self, cache: RowCache, notes: Path) -> None:
        """``notes``: where the logs of live runs are noted, so that the next `ps` reads on from there."""
        self._cache = cache
        self._notes_folder = notes
        self._machine: Any = None

    def row(self, run: RunDir) -> Row:
        return self._cache.get(run) or self._read(run)

    def _read(self, run: RunDir) -> Row:
        from ..core.follow.budget import Budget
        from ..core.present.states import badge
        from ..core.runs.report import as_json
        from ..core.runs.run_reader import RunReader

        numbers = run.attempt_numbers()
        stamps = _stamps(run, numbers[-1] if numbers else 0)
        reader = RunReader(run, self._this_machine(), self._notes)
        snapshot = reader.refresh(full=False, budget=Budget(_READ_SECONDS))
        row = Row(as_json(snapshot, full=False), badge(snapshot).word, snapshot.numbers.loss_is_finite)
        watches_others = bool(reader.witnesses.spec.value and reader.witnesses.spec.value.watch)
        if reader.witnesses.settled and reader.sources.exhausted(False) and not watches_others:
            self._cache.put(run, row, stamps)
            self._notes.drop(run.run)
        else:
            reader.sources.note()
        return row

    def forget_others(self) -> None:
        """Drop the notes of runs that are not told from them any more."""
        if self._notes_folder.is_dir():
            self._notes.forget_others()

    @cached_property
    def _notes(self) -> LogNotes:
        from ..core.runs.notes import LogNotes

        return LogNotes(self._notes_folder)

    def _this_machine(self) -> Any:
        if self._machine is None:
            from ..core.runs.witness import Machine
            from ..wire.liveness import boot_id, system_process_table

            self._machine = Machine(table=system_process_table(), boot_id=boot_id())
        return self._machine


def _run_dirs(runs: Path) -> list[RunDir]:
    from ..core.runs.find import run_dirs

    return run_dirs(runs)


def _stamps(run: RunDir, attempt: int) -> list[int]:
    """When the files that a row is told from last changed; renames and new attempts show in the folders."""
    folder = f"{run.path}/"
    names = ("", "spec.json", "status.json", "metrics.jsonl", "attempts")
    paths = [folder + name for name in names]
    paths += [f"{folder}attempts/{attempt}/{name}" for name in ("", "output.log", "heartbeat.json", "exit.json")]
    return [stamp for path in paths for stamp in _stamp(path)]


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of these; a Path each would triple the cost
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
