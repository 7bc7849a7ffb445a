"""A file of a program, console output or a metric file, read in slices by the right reader."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...wire import storage
from ...wire.records import LaunchRecord
from ...wire.rundir import AttemptDir
from ..follow import SLICE_BYTES, FollowedFile
from ..model.errors import OperationError, UsageError
from .planned import planned_totals

if TYPE_CHECKING:
    from ..formats.files import MetricFile
    from ..formats.media import Media
    from ..formats.points import Number, Point, Standing
    from ..formats.reader import LogReader
    from ..model.kept import Kept

PREVIEW_BYTES = SLICE_BYTES
"""Of a longer log, the end is read first; the rest follows in slices."""


_HEAD_BYTES = 1 << 14
WIDE, WIDE_SLICE_BYTES = 1000, 1 << 21
"""With so many metrics a normal slice holds only two rows, and a column of two values costs as much as of a hundred."""


class ConsoleSource:
    """Console output, read in slices."""

    def __init__(self, file: FollowedFile, pattern: str | None) -> None:
        self._file = file
        self._pattern = pattern
        self._from_zero = False
        self._epoch_length: Number | None = None
        self._steps = _steps_asked_for(file.path)
        self._reader = self._new_reader()
        self._previewer: LogReader | None = None

    @property
    def primary(self) -> str | None:
        """The name of the loss series to chart; None if there is only one, empty if none of several is the main one."""
        return self._reader.primary

    @property
    def in_part(self) -> str | None:
        return self._reader.in_part

    @property
    def standing(self) -> Standing:
        """What the output says about the run as a whole; judged by the end of the file until the rest has been read."""
        return (self._previewer or self._reader).standing

    def preview(self) -> Sequence[Point]:
        """Return points from the end of a file that is too long to be read at once; otherwise none."""
        if self._file.size <= PREVIEW_BYTES:
            return ()
        reader = self._previewer = self._new_reader(from_zero=self._begins_with_zero())
        points = reader.take(bytes_at(self._file.path, self._file.size - PREVIEW_BYTES, PREVIEW_BYTES))
        return [point for point in points if reader.primary is None or point.newest.series in ("", reader.primary)]

    def _begins_with_zero(self) -> bool:
        """True if epochs are counted from 0, which only the beginning of the file shows."""
        points = self._new_reader().take(bytes_at(self._file.path, 0, _HEAD_BYTES))
        return any(point.newest.epoch is not None and point.newest.first_epoch == 0 for point in points)

    def finish(self) -> Sequence[Point]:
        """Return the points of a last line without a line break, once the file is complete."""
        return self._reader.close()

    @property
    def epoch_length(self) -> Number | None:
        """Steps per epoch, if they start over in each epoch and no line gives their number."""
        return self._reader.epoch_length

    def count_on(self, *, from_zero: bool, epoch_length: Number | None) -> None:
        """Count as an earlier attempt did: a resumed attempt does not start at the first epoch, so it shows less."""
        if (from_zero, epoch_length) != (self._from_zero, self._epoch_length) and not self._file.offset:
            self._from_zero, self._epoch_length = from_zero, epoch_length
            self._reader = self._new_reader()

    def read(self) -> Sequence[Point]:
        data, self._previewer = self._file.take(SLICE_BYTES), None
        try:
            return self._reader.take(data)
        except Exception as error:  # noqa: BLE001 - arbitrary text: if it breaks the reader, only this slice is lost
            self._reader = self._new_reader()
            self._reader.failure = f"{type(error).__name__}: {error}"
            return ()

    def _new_reader(self, *, from_zero: bool = False) -> LogReader:
        zero = from_zero or self._from_zero
        return log_reader(self._pattern, from_zero=zero, epoch_length=self._epoch_length, steps=self._steps)


def log_reader(
    pattern: str | None,
    *,
    from_zero: bool = False,
    epoch_length: Number | None = None,
    steps: int | None = None,
) -> LogReader:
    """Return a reader of console output that also knows the ``pattern`` of a profile; see `LogReader`."""
    from ..formats.grammars import Declared, all_grammars
    from ..formats.reader import LogReader

    grammars = all_grammars if pattern is None else lambda: [Declared(pattern), *all_grammars()]
    return LogReader(grammars, from_zero=from_zero, epoch_length=epoch_length, steps=steps)


def _steps_asked_for(output: Path) -> int | None:
    """Return the steps among the arguments of the attempt that prints this output, if they name no epochs."""
    folder = AttemptDir(output.parent, 0)
    launch = storage.read_or_none(LaunchRecord, folder.launch) if output == folder.output else None
    totals = {} if launch is None else planned_totals(launch)
    return int(totals["steps"]) if "steps" in totals and not {"epochs", "epoch"} & set(totals) else None


class MetricSource:
    """A metric file, read by its own reader."""

    primary: str | None = None

    def __init__(self, file: FollowedFile, metrics: MetricFile) -> None:
        self._failure: str | None = None
        self._file = file
        self.metrics = metrics
        self._slice_bytes = SLICE_BYTES

    @property
    def in_part(self) -> str | None:
        return self._failure or self.metrics.summary().read_in_part

    @property
    def standing(self) -> Standing:
        """What the file says about the run as a whole."""
        return self.metrics.summary().standing

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The images and texts that the file contains besides numbers, if its reader finds any."""
        media: Media | None = getattr(self.metrics, "media", None)
        return media.found if media is not None else ()

    @property
    def settings(self) -> Mapping[str, str]:
        """The arguments of the run, if the file contains them."""
        found: Mapping[str, str] = getattr(self.metrics, "settings", {})
        return found

    def preview(self) -> Sequence[Point]:
        """Return points from the end of a long file, if its reader can find them there."""
        glance = getattr(self.metrics, "glance", None)
        try:
            return glance() if glance is not None else ()
        except OSError:
            return ()

    def read(self) -> Sequence[Point]:
        from ..formats.points import PointColumns

        before = self.metrics.position
        self._file.offset = self._file.size  # even if a torn last record keeps the reader from reaching the end
        try:
            points = self.metrics.take(self._slice_bytes)
        except OSError:
            return ()
        except Exception as error:  # noqa: BLE001 - arbitrary file: if the reader fails, only this look is lost
            self._failure = f"{type(error).__name__}: {error}"
            return ()
        is_wide = sum(len(point.values) for point in points if isinstance(point, PointColumns)) > WIDE
        self._slice_bytes = WIDE_SLICE_BYTES if is_wide else SLICE_BYTES
        if self.metrics.position != before:
            self._file.offset = min(self._file.size, self.metrics.position)
        return points


def open_source(file: FollowedFile, pattern: str | None) -> ConsoleSource | MetricSource | None:
    """Return the reader for the file's content; None if the file cannot be read now."""
    from ..formats.files import detect
    from ..formats.files.console_log import ConsoleLog

    if pattern is not None:
        return ConsoleSource(file, pattern)
    try:
        found = detect(file.path)
    except (UsageError, OperationError, OSError):
        return None
    return ConsoleSource(file, None) if isinstance(found, ConsoleLog) else MetricSource(file, found)


def bytes_at(path: Path, offset: int, length: int) -> bytes:
    """Return up to ``length`` bytes at ``offset``; none if the file cannot be read."""
    try:
        with storage.open_file(path) as file:
            return os.pread(file.fileno(), length, offset)
    except OSError:
        return b""
