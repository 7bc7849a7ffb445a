"""``python -m trainer results DIR...``: the results of runs, from their own records. Standard library only.

One line for each run, then a table of the options in which they differ, if any.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpstui.wire.rundir import AttemptDir, RunDir
from mpstui.wire.storage import UnreadableRecord, load_object

from .comparison import Outcome, compared
from .errors import UsageError

_HEADERS = ("run", "device", "steps", "train loss", "metric", "last", "best", "at step", "samples/s", "minutes")
_METRICS = {
    **dict.fromkeys(("val_accuracy", "val_recall@10", "val_wall_f1", "val_directional_accuracy", "val_auc"), max),
    "val_loss": min,
}
"""Validation metrics to compare runs by, and which direction is better; the first that a run has is used."""
_NO_CHOICE = ("resume", "out", "device")
"""Options that say where a run is, not what it does."""


@dataclass(frozen=True)
class Result:
    """The results of one run."""

    run: str
    device: str
    steps: int
    train_loss: float | None
    metric: str | None
    """The validation metric by which it is compared: accuracy if it has one, else the loss."""
    last: float | None
    best: float | None
    best_step: int | None
    samples_per_second: float | None
    minutes: float
    finished: bool = False
    """Whether its trainer reported that it was done."""
    options: Mapping[str, str] = field(default_factory=dict)
    """From the command line of its newest attempt; empty if that was not recorded."""

    def cells(self) -> tuple[str, ...]:
        """The row as text; unknown is n/a."""
        return (
            self.run,
            self.device,
            f"{self.steps:,}",
            _shown(self.train_loss, ".4f"),
            self.metric or "n/a",
            _shown(self.last, ".4f"),
            _shown(self.best, ".4f"),
            _shown(self.best_step, ","),
            _shown(self.samples_per_second, ",.0f"),
            f"{self.minutes:.1f}",
        )


def main(arguments: Sequence[str], parser: argparse.ArgumentParser) -> str:
    """The text for a command line.

    Raises:
        UsageError: no folder is named, or one holds no matching run.
    """
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="a run directory, or a folder of them")
    parser.add_argument("--profile", metavar="NAME", help="only runs of this profile")
    parser.add_argument("--by", metavar="KEY,..", help="options to compare by (default: those that differ)")
    parser.add_argument("--metric", metavar="NAME", help="compare by this metric's last value")
    parser.add_argument("--groups", action="store_true", help="the comparison alone, without a line for each run")
    asked = parser.parse_args(arguments)
    if not asked.folders:
        raise UsageError(f"results needs run directories, or folders of them: python -m {__package__} results DIR...")
    results = collected(asked.folders, profile=asked.profile, metric=asked.metric)
    by = [key.strip().removeprefix("--") for key in asked.by.split(",") if key.strip()] if asked.by else None
    groups = comparison(results, by)
    if not groups and (by or asked.groups):
        raise UsageError("these runs differ in no option that was recorded: there is nothing to compare")
    return "\n\n".join(part for part in ("" if asked.groups else listing(results), groups) if part)


def table(folders: Sequence[Path]) -> str:
    """A line for every run in these folders.

    Raises:
        UsageError: a folder holds no run with metrics.
    """
    return listing(collected(folders))


def collected(folders: Sequence[Path], *, profile: str | None = None, metric: str | None = None) -> list[Result]:
    """The results of run directories, and of all runs in folders of them, oldest first.

    Raises:
        UsageError: a folder holds no run with metrics, or none of them is of this profile.
    """
    runs = [run for folder in folders for run in _runs(folder)]
    wanted = [run for run in runs if profile is None or _spec(run).get("profile") == profile]
    if not wanted:
        raise UsageError(f"none of the {len(runs)} runs with metrics there is of profile {profile!r}")
    return [read(run, metric) for run in wanted]


def listing(results: Sequence[Result]) -> str:
    """One line for each run."""
    return aligned([_HEADERS, *(result.cells() for result in results)])


def comparison(results: Sequence[Result], by: Sequence[str] | None) -> str:
    """The table of the options in which runs differ; empty if no difference is known.

    Raises:
        UsageError: they have different metrics, or none of them has an option of ``by``.
    """
    names = {result.metric for result in results if result.metric}
    if len(names) != 1:
        if by:
            raise UsageError(f"these runs have different metrics ({', '.join(sorted(names))}): name one with --metric")
        return ""
    outcomes = [Outcome(result.options, result.last, result.finished) for result in results]
    rows, notes = compared(outcomes, by)
    title = f"{names.pop()}, last value: mean and standard deviation over finished runs"
    return "\n".join([title, aligned(rows), *notes]) if rows else ""


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Cells as columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def read(run: RunDir, metric: str | None = None) -> Result:
    """Sum up one run, without a torn last line.

    Args:
        metric: the metric to use; None: the first of the usual ones that it has.
    """
    points = list(_points(run.metrics))
    losses = [value for point in points if (value := point.get("loss")) is not None]
    name, values = _measured(points, metric)
    best = _METRICS.get(name or "", max)(values, key=lambda pair: pair[0]) if values else None
    speeds = sorted(value for point in points if (value := point.get("samples_per_second")) is not None)
    heartbeat = _newest_heartbeat(run)
    return Result(
        run=run.run,
        device=str((heartbeat.get("device") or {}).get("type", "n/a")),
        steps=max((int(point.get("step", 0)) for point in points), default=0),
        train_loss=losses[-1] if losses else None,
        metric=name,
        last=values[-1][0] if values else None,
        best=best[0] if best else None,
        best_step=best[1] if best else None,
        samples_per_second=speeds[len(speeds) // 2] if speeds else None,
        minutes=(points[-1]["time"] - points[0]["time"]) / 60 if points else 0.0,
        finished=heartbeat.get("phase") == "done",
        options=_options(run),
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


def _measured(points: Sequence[dict[str, Any]], metric: str | None) -> tuple[str | None, list[tuple[float, int]]]:
    """The metric and its values with their steps, in order."""
    for name in (metric,) if metric else _METRICS:
        values = [(value, int(point["step"])) for point in points if (value := point.get(name)) is not None]
        if values:
            return name, values
    return None, []


def _attempts(run: RunDir) -> Iterator[AttemptDir]:
    return (run.attempt(number) for number in reversed(run.attempt_numbers()))


def _newest_heartbeat(run: RunDir) -> dict[str, Any]:
    return next((found for attempt in _attempts(run) if (found := _record(attempt.heartbeat()))), {})


def _options(run: RunDir) -> dict[str, str]:
    """``--key value`` of the last command that was actually started, else of the requested one."""
    launched = next((found for attempt in _attempts(run) if (found := _record(attempt.launch))), {})
    words = launched.get("argv") or _asked_words(_spec(run))
    found = {}
    for word, following in itertools.pairwise([*words, "--"]):
        if word.startswith("--") and len(word) > len("--"):
            key, glued, value = word[2:].partition("=")
            found[key] = value if glued else "true" if following.startswith("--") else following
    return {key: value for key, value in found.items() if key not in _NO_CHOICE}


def _asked_words(spec: Mapping[str, Any]) -> list[str]:
    launch = spec.get("launch") or {}
    variants = launch.get("variants") or {}
    return list((variants.get(launch.get("device")) or {}).get("argv") or [])


def _spec(run: RunDir) -> dict[str, Any]:
    return _record(run.spec)


def _record(path: Path) -> dict[str, Any]:
    """A JSON object; an empty one if none can be read."""
    try:
        return load_object(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, UnreadableRecord):
        return {}


def _shown(value: float | None, form: str) -> str:
    return "n/a" if value is None else format(value, form)
