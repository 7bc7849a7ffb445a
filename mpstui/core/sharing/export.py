"""The points of a run for other programs, as CSV or Parquet. Nothing is thinned without saying so."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ...wire import storage
from ..model.errors import OperationError
from ..model.snapshot import RunSnapshot, SeriesView

MOST_POINTS = 4_000_000
"""The most points per metric that are exported singly; in a longer history neighbours are merged, keeping spikes."""
_PLACES = ("step", "epoch", "time")


class Table(NamedTuple):
    """One row for each moment at which something was measured; None for metrics that were not measured then."""

    names: tuple[str, ...]
    """``step``, ``epoch``, ``time`` (Unix seconds), any other axis that a program counts by, then the metrics."""
    rows: list[list[float | None]]
    thinned: tuple[str, ...]
    """Metrics that do not have a row for every point."""


def table_of(snapshot: RunSnapshot) -> Table:
    """All points of a run that was read with :data:`MOST_POINTS` columns, ordered by step, epoch and time.

    A point that a later attempt measured again appears once, as in the chart.
    """
    curves = list(snapshot.series.values())
    others = dict.fromkeys(view.axis for view in curves if view.axis not in _PLACES)
    names = [*_PLACES, *others, *snapshot.series]
    found: dict[tuple[float | None, ...], list[float | None]] = {}
    for column, view in enumerate(curves, len(_PLACES) + len(others)):
        at = names.index(view.axis)
        for x, epoch, time, value in zip(view.x, view.epochs, view.times, view.values, strict=True):
            place: list[float | None] = [None] * len(names)
            place[1], place[2], place[at] = _known(epoch), _known(time), _known(x)
            row = found.setdefault(tuple(place[: len(_PLACES) + len(others)]), place)
            row[column] = value
    rows = sorted(found.values(), key=lambda row: [math.inf if one is None else one for one in (row[0], *row[1:3])])
    thinned = (name for name, view in snapshot.series.items() if view.count > _held(view))
    return Table(tuple(names), rows, tuple(thinned))


def _held(view: SeriesView) -> int:
    return len(view.x) + sum(len(piece.x) for piece in view.superseded)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def is_standard_output(path: Path) -> bool:
    """True if the path is ``-``, or is the same file as the standard output, such as ``/dev/stdout``."""
    found = storage.stat_of(path)
    try:
        return str(path) == "-" or (found is not None and os.path.samestat(found, os.fstat(sys.stdout.fileno())))
    except (OSError, ValueError, AttributeError):  # standard output is closed, or has no descriptor
        return False


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears only once all of it has been written: a full disk leaves no partial file.

    Standard output, pipes and devices are written to directly; of a link, the target is replaced.

    Raises:
        OSError: it cannot be written; the error has its path.
    """
    part: Path | None = None
    try:
        if is_standard_output(path):
            sys.stdout.flush()
            with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as file:
                yield file
            return
        found = storage.stat_of(path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            with path.open("wb") as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        with storage.create_file(part) as file:
            yield file
        part.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; see :func:`whole_file`."""
    with whole_file(path) as file:
        file.write(data)


def write_csv(table: Table, path: Path) -> None:
    """Write CSV as pandas reads it: an empty cell if nothing was measured, ``nan`` and ``inf`` if that was measured."""
    with whole_file(path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(table.names)
        out.writerows([_cell(value) for value in row] for row in table.rows)


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)


def write_parquet(table: Table, path: Path) -> None:
    """Write columns of doubles, null where nothing was measured.

    Raises:
        OperationError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise OperationError("Parquet needs pyarrow, which is not here", "pip install pyarrow; or `--to csv`") from None
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.names)
    made = [pyarrow.array(column, type=pyarrow.float64()) for column in columns]
    with whole_file(path) as file:
        parquet.write_table(pyarrow.table(made, names=list(table.names)), file)


TABLES: dict[str, Callable[[Table, Path], None]] = {"csv": write_csv, "parquet": write_parquet}
"""The function that writes a table, by format name."""


def file_stem(text: str) -> str:
    """Make a file name from any text: letters, digits, ``-_.``, and nothing that leaves the folder."""
    return re.sub(r"[^\w.-]+", "-", text).strip(".-")[:80] or "run"


def run_stem(snapshot: RunSnapshot) -> str:
    """A file name for a run: its id, or the last part of its path."""
    return file_stem(snapshot.run.rpartition("#")[2].rpartition("/")[2])


def unused_path(folder: Path, name: str, ending: str) -> Path:
    """A path that does not exist yet: ``name.ending``, ``name-2.ending`` and so on."""
    stem, number = file_stem(name), 1
    path = folder / f"{stem}.{ending}"
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.{ending}"
    return path
