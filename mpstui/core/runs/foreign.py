"""Numbers of a program that knows nothing of us: read from its output or from a metric file of its own."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..follow.budget import SLICE_BYTES, Budget
from ..series.store import SeriesStore
from .snapshot import SeriesView

if TYPE_CHECKING:
    from ..formats import LogReader, MetricPoint

PREVIEW_BYTES = 1 << 19
"""A longer file is understood from its end first; the rest follows in slices."""


class ForeignPoints:
    """Follows one log or metric file through the reader of formats.

    ``newest`` has the keys of a metrics record, plus the plan (``epochs``, ``steps``, ``epoch_step`` ...).
    """

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self.path = path
        self.newest: dict[str, Any] = {}
        self.changed_at: float | None = None
        """When the file was last written, Unix seconds; None: there is no file."""
        self.identity: tuple[int, int] | None = None
        self._clock = clock
        self._reader: LogReader | None = None
        self._offset = 0
        self._size = 0
        self._previewed = 0
        self._store = SeriesStore()
        self._series: str | None = None

    @property
    def complete(self) -> bool:
        """Whether all of the file has been read."""
        return self._reader is not None and self._offset >= self._size

    def look(self) -> bool:
        """Stat the file; True when there is something to read."""
        try:
            found = self.path.stat()
        except OSError:
            self.changed_at = None
            return False
        identity = (found.st_dev, found.st_ino)
        if self.identity not in (None, identity) or found.st_size < self._offset:
            self._forget()
        self.identity, self.changed_at, self._size = identity, found.st_mtime, found.st_size
        return self._offset < self._size

    def preview(self) -> None:
        """Understand the end of the file, where it is too long to be read at once."""
        if self._size - self._offset <= PREVIEW_BYTES or self._size - self._previewed <= PREVIEW_BYTES:
            return
        from ..formats import LogReader

        reader = LogReader()
        points = reader.feed(self._pread(self._size - PREVIEW_BYTES, PREVIEW_BYTES))
        for point in points[-200:]:
            self.newest.update(self._known(point))
        self._previewed = self._size

    def read(self, budget: Budget) -> list[Mapping[str, Any]]:
        """Read on; returns the records that are new at the end of the file (not those of an old backlog)."""
        from ..formats import LogReader

        if self._reader is None:
            self._reader = LogReader()
        fresh: list[Mapping[str, Any]] = []
        while self._offset < self._size:
            data = self._pread(self._offset, SLICE_BYTES)
            if not data:
                break
            live = self._offset > 0 and self._size - self._offset <= SLICE_BYTES
            self._offset += len(data)
            records = self._take(self._reader.feed(data), timed=live)
            if self._offset > self._previewed:
                for record in records:
                    self.newest.update(record)
                fresh.extend(records)
            if budget.spent:
                break
        return fresh

    def views(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Curves by name; the one to chart is called ``loss``."""
        return self._store.views(names, **options)

    def _take(self, points: Sequence[MetricPoint], *, timed: bool) -> list[Mapping[str, Any]]:
        """Records for the store; the moment of arrival is a point's time only where it arrived while we looked."""
        moment = self._clock() if timed else None
        records = [{"time": moment, "attempt": point.run, **self._record(point)} for point in points]
        self._store.add(records)
        return [{**record, **self._known(point)} for record, point in zip(records, points, strict=True)]

    def _record(self, point: MetricPoint) -> dict[str, Any]:
        record: dict[str, Any] = {"epoch": point.counters.epoch, "step": global_step(point)}
        if point.loss is not None and self._leads(point.series):
            record["loss"] = point.loss
        if point.learning_rate is not None:
            record["lr"] = point.learning_rate
        record.update({name: value for name, value in point.metrics.items() if name not in record})
        record.update(point.eval_metrics)
        return record

    def _leads(self, series: str) -> bool:
        """Whether this series of losses is the one to chart; a better one that shows up later takes over."""
        primary = self._reader.primary if self._reader else None
        if primary is not None and primary != self._series:
            self._series = primary
        return self._series is None or series == self._series

    def _known(self, point: MetricPoint) -> dict[str, Any]:
        counters = point.counters
        found = {
            "epoch": counters.epoch,
            "epochs": counters.epochs,
            "step": counters.step,
            "steps": counters.steps,
            "epoch_step": counters.epoch_step,
            "epoch_steps": counters.epoch_steps,
            "loss": point.loss if self._leads(point.series) else None,
            "lr": point.learning_rate,
            "samples_per_second": None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _pread(self, offset: int, length: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                return os.pread(file.fileno(), length, offset)
        except OSError:
            return b""

    def _forget(self) -> None:
        self._reader, self._store, self._series = None, SeriesStore(), None
        self._offset = self._previewed = 0
        self.newest.clear()


def global_step(point: MetricPoint) -> float | None:
    """Steps of the whole run, told or put together from the epoch and the step in it; None when neither is there."""
    counters = point.counters
    if counters.step is not None:
        return float(counters.step)
    if counters.epoch_step is None or not counters.epoch_steps:
        return None
    epoch = counters.epoch if counters.epoch is not None else 0
    return math.floor(epoch) * float(counters.epoch_steps) + float(counters.epoch_step)
