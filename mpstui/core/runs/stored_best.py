"""The best values of long runs in stores, which a list reads in the background: once, as long as they are unchanged.

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
"""Runs, the newest ones that were read."""
_MOST_BYTES = 16 << 20
_CAPACITY = 64
"""Points held per curve: only the lowest and the highest value of all are needed."""

Stamps = list[list[int] | None]


class KeptBest:
    """What earlier processes have read, by the key of a run and the state of its files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Any] | None = None

    def find(self, key: str, stamps: Stamps) -> Extremes | None:
        """None if nobody has read it in its present state."""
        try:
            known, found = self._held()[key]
            return {name: (low, high) for name, (low, high) in found.items()} if known == stamps else None
        except (LookupError, TypeError, ValueError, AttributeError):  # whatever the file has become
            return None

    def keep(self, key: str, stamps: Stamps, extremes: Extremes) -> None:
        """Remember it for the next process; a disk that accepts nothing costs only time."""
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
    """The one of a home, by its state folder."""
    return KeptBest(state / "cache" / "stores.json")


def stamps_of(files: Iterable[Path]) -> Stamps:
    """What tells a run's files from changed ones."""
    return [None if (found := storage.stamp(one)) is None else list(found) for one in files]


class BestValues:
    """The lowest and highest values of one run, by which lists judge it: read with it or, of a long one, aside.

    A ``mark`` is whatever reveals that its files have grown.
    """

    def __init__(
        self, stored: StoredRun, clock: Callable[[], float], only: Container[str], kept: KeptBest | None
    ) -> None:
        """``only``: the names of the metrics that a list judges runs by; ``kept``: what others have found."""
        self.found: Extremes = {}
        self._stored, self._clock, self._only, self._kept = stored, clock, only, kept
        self._reader: BestReader | None = None
        """Begun, and not yet at the end of a run that is over."""
        self._known_at: object = None
        self._asked_at: object = None

    def add(self, found: Extremes) -> None:
        self.found = {**self.found, **found}

    def lack(self, mark: object, *, is_over: bool) -> bool:
        """Whether there is more to read, or all of a run that is over can be kept for others."""
        return self._known_at != mark or (self._reader is not None and is_over)

    def recall(self, mark: object) -> None:
        """Ask once what others have found."""
        if self._kept is None or self._asked_at == mark:
            return
        self._asked_at = mark
        found = self._kept.find(self._stored.key, stamps_of(self._stored.files()))
        if found is not None:
            self.add(found)
            self._known_at = mark

    def read(self, budget: Budget, mark: object, *, is_over: bool) -> bool:
        """Read on; whether that came to the end."""
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
        """Somebody has resumed the run: all of it is read anew."""
        self._reader = None


class BestReader:
    """Reads one long run for its lowest and highest values, in slices; what has come since is added."""

    def __init__(self, stored: StoredRun, clock: Callable[[], float], only: Container[str]) -> None:
        """``only``: the names of the metrics that a list judges runs by."""
        self._external = metrics_of_run(stored, clock, SeriesStore(capacity=_CAPACITY, only=only))

    def read(self, budget: Budget) -> Extremes | None:
        """Read on; the values once it is at the end, or nothing more can be read; None before."""
        self._external.poll()
        before = self._external.file.offset
        self._external.read(budget)
        stands = self._external.file.offset == before
        return self._external.store.extremes() if self._external.complete or stands else None
