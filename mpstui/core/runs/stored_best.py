"""The best values of long runs in stores, read in the background for lists, and only once while a run is unchanged.

One file in the home holds all of them. Losing it costs only time.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any

from ...wire import storage
from ..follow import Budget
from ..formats.stores import StoredRun
from ..model.reader_version import reader_version
from ..series.series import SeriesStore
from .journal import Extremes
from .stored_metrics import metrics_of_run

MOST_KEPT = 2000
"""How many runs are kept: those read most recently."""
_MOST_BYTES = 16 << 20
_CAPACITY = 64
"""Buckets per curve: only the overall minimum and maximum are needed."""

Stamps = list[list[int] | None]


class KeptBest:
    """Best values read by earlier processes, by the key of a run and the state of its files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Any] | None = None

    def find(self, key: str, stamps: Stamps) -> Extremes | None:
        """Return the values; None if nobody has read the run in its present state."""
        try:
            known, found = self._held()[key]
            return {name: (low, high) for name, (low, high) in found.items()} if known == stamps else None
        except (LookupError, TypeError, ValueError, AttributeError):  # whatever the file has become
            return None

    def keep(self, key: str, stamps: Stamps, extremes: Extremes) -> None:
        """Save the values for the next process; if the disk refuses, only time is lost."""
        self._known = None  # others may have read more since
        known = self._held()
        known.pop(key, None)
        known[key] = [stamps, {name: list(ends) for name, ends in extremes.items()}]
        kept = dict([*known.items()][-MOST_KEPT:])
        with contextlib.suppress(OSError):
            storage.make_private_folder(self._path.parent)
            storage.write_bytes(self._path, json.dumps({reader_version(): kept}).encode(), sync=False)

    def _held(self) -> dict[str, Any]:
        if self._known is None:
            found: Any = None
            with contextlib.suppress(OSError, ValueError, RecursionError, AttributeError):
                found = json.loads(storage.read_bytes(self._path, _MOST_BYTES)).get(reader_version())
            self._known = found if isinstance(found, dict) else {}
        return self._known


def kept_in(state: Path) -> KeptBest:
    """Return the best values kept in a home's state folder."""
    return KeptBest(state / "cache" / "stores.json")


def stamps_of(files: Iterable[Path]) -> Stamps:
    """Return what reveals whether a run's files have changed."""
    return [None if (found := storage.stamp(one)) is None else list(found) for one in files]


class BestValues:
    """The lowest and highest values of a run, by which lists judge it: read with its curves, or separately if long.

    A ``mark`` is a value that changes when its files grow.
    """

    def __init__(
        self, stored: StoredRun, clock: Callable[[], float], only: Container[str], kept: KeptBest | None
    ) -> None:
        """``only``: the metrics that a list judges runs by; ``kept``: values found by other processes."""
        self.found: Extremes = {}
        self._stored, self._clock, self._only, self._kept = stored, clock, only, kept
        self._reader: BestReader | None = None
        """Set while reading: until the end of a run that is over was reached."""
        self._known_at: object = None
        self._asked_at: object = None

    def add(self, found: Extremes) -> None:
        self.found = {**self.found, **found}

    def lack(self, mark: object, *, is_over: bool) -> bool:
        """True if there is more to read, or if the run is over and its values can now be saved for others."""
        return self._known_at != mark or (self._reader is not None and is_over)

    def recall(self, mark: object) -> None:
        """Ask once for the values that others have found."""
        if self._kept is None or self._asked_at == mark:
            return
        self._asked_at = mark
        found = self._kept.find(self._stored.key, stamps_of(self._stored.files()))
        if found is not None:
            self.add(found)
            self._known_at = mark

    def read(self, budget: Budget, mark: object, *, is_over: bool) -> bool:
        """Continue reading; True if the end was reached."""
        self._reader = self._reader or BestReader(self._stored, self._clock, self._only)
        stamps, found = stamps_of(self._stored.files()), self._reader.read(budget)
        if found is None:
            return False
        self.add(found)
        self._known_at = mark
        if is_over:
            self._reader = None
            if self._kept is not None:
                self._kept.keep(self._stored.key, stamps, found)
        return True

    def begin_again(self) -> None:
        """Start over, because the run was resumed."""
        self._reader = None


class BestReader:
    """Reads the lowest and highest values of a long run in slices, and later those of what was added."""

    def __init__(self, stored: StoredRun, clock: Callable[[], float], only: Container[str]) -> None:
        """``only``: the metrics that a list judges runs by."""
        self._external = metrics_of_run(stored, clock, SeriesStore(capacity=_CAPACITY, only=only))

    def read(self, budget: Budget) -> Extremes | None:
        """Continue reading; return the values once nothing more can be read, None before."""
        self._external.poll()
        before = self._external.file.offset
        self._external.read(budget)
        stands = self._external.file.offset == before
        return self._external.store.extremes() if self._external.complete or stands else None
