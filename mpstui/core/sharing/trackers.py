"""A run in the formats of experiment trackers: files that their own programs open; no account or package is needed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...wire import heartbeat
from ..model.snapshot import Checkpoint, RunSnapshot, State
from ..present import why_not_its_own
from ..runs.gallery import Gallery, Item, gallery_of
from ..runs.images import Image
from ..runs.run_settings import named_settings
from .export import Table, run_stem, table_of

PROJECT = "mpstui"
Value = bool | int | float | str | None


class LoggedRow(NamedTuple):
    """The values measured at one step."""

    step: int
    time: float | None
    """Unix seconds of the last measurement; None if unknown."""
    values: Mapping[str, float]


@dataclass(frozen=True)
class TrackedRun:
    """What every tracker needs to know about a run."""

    id: str
    name: str
    state: State
    code: int | None
    config: Mapping[str, Value]
    argv: Sequence[str]
    tags: Sequence[str]
    note: str
    started: float
    ended: float | None
    rows: Sequence[LoggedRow]
    counts_rows: bool
    """True if steps are row numbers: rows lack integer steps, or a metric was measured twice at one step."""
    checkpoints: Sequence[Checkpoint]
    thinned: Sequence[str]
    """Metrics that are not included point for point, since neighbours were merged."""
    gallery: Gallery
    """Its images and texts."""

    @property
    def newest(self) -> Mapping[str, float]:
        """The last value of each metric."""
        return {name: value for row in self.rows for name, value in row.values.items()}


def tracked(snapshot: RunSnapshot) -> TrackedRun:
    """Convert a run that was read with :data:`.export.MOST_POINTS` columns and whose settings have secrets masked."""
    table = table_of(snapshot)
    rows, counts_rows = _rows(table)
    return TrackedRun(
        id=run_stem(snapshot),
        name=snapshot.name,
        state=snapshot.state,
        code=snapshot.exit.code if snapshot.exit else None,
        config={name: _typed(text) for name, text in named_settings(snapshot).items()},
        argv=snapshot.argv,
        tags=snapshot.tags,
        note=snapshot.note,
        started=snapshot.started or next((row.time for row in rows if row.time), snapshot.updated) or 0.0,
        ended=snapshot.ended if snapshot.state is not State.WATCHED else None,  # how it ended is unknown; trackers ask
        rows=rows,
        counts_rows=counts_rows,
        checkpoints=[one for one in snapshot.checkpoints if one.complete and not why_not_its_own(one, snapshot)],
        thinned=table.thinned,
        gallery=gallery_of(snapshot),
    )


def _rows(table: Table) -> tuple[list[LoggedRow], bool]:
    """One row per step; if that is impossible, one per moment, with its step as a value, and True."""
    places = table.names.index("time") + 1
    found: dict[int, tuple[float | None, dict[str, float]]] = {}
    for row in table.rows:
        step, time, values = row[0], row[2], _measured(table, row, places)
        if step is None or step % 1 or not values.keys().isdisjoint(found.get(int(step), (None, {}))[1]):
            break
        before, held = found.setdefault(int(step), (time, {}))
        held |= {"epoch": row[1]} if row[1] is not None else {}
        found[int(step)] = (max(filter(None, (before, time)), default=None), held | values)
    else:
        return [LoggedRow(step, *found[step]) for step in sorted(found)], False
    every = []
    for number, row in enumerate(table.rows):
        where = {name: at for name, at in zip(table.names[:places], row, strict=False) if at is not None}
        every.append(LoggedRow(number, where.pop("time", None), where | _measured(table, row, places)))
    return every, True


def _measured(table: Table, row: Sequence[float | None], places: int) -> dict[str, float]:
    """The values of a row by name, including an axis other than steps, epochs and time."""
    cells = zip(table.names[places:], row[places:], strict=True)
    return {name: value for name, value in cells if value is not None}


def _typed(text: str) -> Value:
    """The text as a number or a bool if it is one: trackers sort by numbers."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool) or heartbeat.number(value) is not None else text


def image_of(run: TrackedRun, item: Item) -> Image | None:
    """One of the run's images; None if it is gone, or is not an image."""
    try:
        return run.gallery.image(item)
    except (OSError, ValueError):
        return None


def number_text(value: float) -> str:
    """The number with every digit; ``NaN`` and ``Infinity`` as every tracker writes them."""
    return json.dumps(int(value) if math.isfinite(value) and value % 1 == 0 and abs(value) < 2**53 else value)


def _writers() -> Mapping[str, Callable[[TrackedRun, Path], Path]]:
    from .mlflow_store import write_mlflow
    from .trackio_database import write_trackio
    from .wandb_folder import write_wandb

    return {"wandb": write_wandb, "mlflow": write_mlflow, "trackio": write_trackio}


FOLDERS = {"wandb": "wandb", "mlflow": "mlruns", "trackio": "trackio"}
"""Where each tracker looks for runs, below the folder in which a training was started."""


def write(run: TrackedRun, tracker: str, folder: Path) -> Path:
    """Write a run below a folder, which is created if necessary; return the file or folder that was written.

    Raises:
        OSError: the disk is full, or the folder cannot be written to.
    """
    return _writers()[tracker](run, folder)


def details_of(one: Checkpoint) -> dict[str, Any]:
    """What is exported of a checkpoint: its path and facts, not its content."""
    return {"path": str(one.path), "bytes": one.size_bytes, "step": one.step, "time": one.time, "best": one.best}
