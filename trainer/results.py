"""``python -m trainer results DIR...``: one line for each run, from its own metrics. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpstui.wire.jsontext import UnreadableRecord, load_object
from mpstui.wire.rundir import RunDir

from .errors import UsageError

_HEADERS = ("run", "device", "steps", "train loss", "metric", "best", "at step", "samples/s", "minutes")


@dataclass(frozen=True)
class Result:
    """What one run came to."""

    run: str
    device: str
    steps: int
    train_loss: float | None
    metric: str | None
    """The validation metric the best is told of: accuracy where there is one, else the loss."""
    best: float | None
    best_step: int | None
    samples_per_second: float | None
    minutes: float

    def cells(self) -> tuple[str, ...]:
        """The row as text; unknown is n/a."""
        return (
            self.run,
            self.device,
            f"{self.steps:,}",
            _shown(self.train_loss, ".4f"),
            self.metric or "n/a",
            _shown(self.best, ".4f"),
            _shown(self.best_step, ","),
            _shown(self.samples_per_second, ",.0f"),
            f"{self.minutes:.1f}",
        )


def table(folders: Sequence[Path]) -> str:
    """The results of run directories, or of every run inside a folder of them, as aligned columns.

    Raises:
        UsageError: a folder holds no run with metrics.
    """
    rows = [_HEADERS, *(read(run).cells() for folder in folders for run in _runs(folder))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADERS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def read(run: RunDir) -> Result:
    """Sum up one run; a torn last line is left out."""
    points = list(_points(run.metrics))
    losses = [value for point in points if (value := point.get("loss")) is not None]
    name, best = _best(points)
    speeds = sorted(value for point in points if (value := point.get("samples_per_second")) is not None)
    return Result(
        run=run.run,
        device=_device(run),
        steps=max((int(point.get("step", 0)) for point in points), default=0),
        train_loss=losses[-1] if losses else None,
        metric=name,
        best=best[0] if best else None,
        best_step=best[1] if best else None,
        samples_per_second=speeds[len(speeds) // 2] if speeds else None,
        minutes=(points[-1]["time"] - points[0]["time"]) / 60 if points else 0.0,
    )


def _runs(folder: Path) -> list[RunDir]:
    if (folder / "metrics.jsonl").is_file():
        return [RunDir(folder.resolve())]
    found = sorted(path.parent for path in folder.glob("*/metrics.jsonl"))
    if not found:
        raise UsageError(f"{folder} holds no metrics.jsonl, and no folder in it does; name a run directory")
    return [RunDir(path) for path in found]


def _points(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            yield load_object(line)
        except UnreadableRecord:
            continue


def _best(points: Sequence[dict[str, Any]]) -> tuple[str | None, tuple[float, int] | None]:
    for name, choose in (("val_accuracy", max), ("val_auc", max), ("val_loss", min)):
        values = [(value, int(point["step"])) for point in points if (value := point.get(name)) is not None]
        if values:
            return name, choose(values, key=lambda pair: pair[0])
    return None, None


def _device(run: RunDir) -> str:
    for number in reversed(run.attempt_numbers()):
        try:
            return str(json.loads(run.attempt(number).heartbeat().read_text())["device"]["type"])
        except (OSError, ValueError, KeyError):
            continue
    return "n/a"


def _shown(value: float | None, form: str) -> str:
    return "n/a" if value is None else format(value, form)
