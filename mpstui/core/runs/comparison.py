"""Compare runs side by side: the settings in which they differ, their results, and the resulting order. No UI code."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from ..model.snapshot import RunSnapshot, SeriesView
from ..present import NOT_FINITE, duration, number, until, whole
from ..series.direction import Best, Better, best_point, better
from ..series.metric_words import is_evaluation, measured, reading_order
from .run_settings import FLAG, is_named, settings_of

MOST_COMPARED = 20
"""How many runs can be compared at once."""
_OTHER_BESTS = 4
"""How many metrics besides the compared one are shown with their best values."""
_AGENT = "agent"
BROKEN_MARK = "✗"
"""Shown beside the best value of a run whose metric or loss is no longer finite."""
Kind = Literal["setting", "here", "best", "last", "position", "seconds"]


class Column(NamedTuple):
    """One quantity across all compared runs; the value is None for a run that does not have it."""

    name: str
    values: tuple[str | float | None, ...]
    kind: Kind = "setting"
    better: Better | None = None
    """The direction in which it improves, if it has one."""
    unread: frozenset[int] = frozenset()
    """Positions of the runs whose value is not known before their whole history has been read."""
    broken: Mapping[int, str] = {}
    """By position of a run that was good and no longer is finite: since when, as of :func:`broken_since`."""

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the column whatever it holds. The name of the ``here`` column changes with the cursor."""
        return self.kind, "" if self.kind == "here" else self.name

    def text(self, place: int) -> str:
        """Return one value as shown: a dash if the run does not have it, an ellipsis if it has not been read yet."""
        value = self.values[place]
        if value is None:
            return "…" if place in self.unread else "–"
        if isinstance(value, str):
            return value
        if self.kind == "seconds":
            return duration(value)
        text = whole(round(value, 1)) if self.kind == "position" and math.isfinite(value) else number(value)
        return f"{text} {BROKEN_MARK}" if place in self.broken else text

    def order(self, *, reverse: bool = False) -> list[int]:
        """Return the positions of the runs, best first (lowest, if no direction is better); ``reverse`` inverts that.

        Runs without a value come last in either direction.
        """
        keys = {place: key for place, value in enumerate(self.values) if (key := _sort_key(value)) is not None}
        falling = (self.better is Better.HIGHER) != reverse
        known = sorted(keys, key=lambda place: keys[place], reverse=falling)
        return [*known, *(place for place in range(len(self.values)) if place not in keys)]

    def best(self) -> frozenset[int]:
        """Return the positions of the best value; empty if no direction is better or nothing can be compared yet."""
        known = {place: one for place, one in enumerate(self.values) if isinstance(one, float) and math.isfinite(one)}
        if self.better is None or self.kind == "last" or len(known) < 2 or self.unread:
            return frozenset()
        found = min(known.values()) if self.better is Better.LOWER else max(known.values())
        return frozenset(place for place, one in known.items() if one == found)


def of_one_teller(snapshots: Sequence[RunSnapshot]) -> list[RunSnapshot]:
    """Return the runs with their losses named alike.

    If any program reports a loss, ``loss`` is the programs' own and ``loss (agent)`` the one seen by the agent. (In a
    single run ``loss`` is whichever curve shows more.)
    """
    told = [_losses(one) for one in snapshots]
    if not any(teller != _AGENT for losses in told for teller in losses):
        return list(snapshots)
    return [_renamed(one, losses) for one, losses in zip(snapshots, told, strict=True)]


def _losses(snapshot: RunSnapshot) -> dict[str, str]:
    """Return the name of the loss curve of each witness."""
    names = {view.told_by: name for name, view in snapshot.series.items() if view.told_by}
    alone = "loss" in snapshot.series and "loss" not in names.values()
    return {snapshot.numbers.told_by.get("loss", ""): "loss"} if alone else names


def _renamed(snapshot: RunSnapshot, losses: Mapping[str, str]) -> RunSnapshot:
    if losses.get(_AGENT) != "loss":
        return snapshot
    theirs = next((name for teller, name in losses.items() if teller != _AGENT), None)
    names = {"loss": f"loss ({_AGENT})", **({theirs: "loss"} if theirs is not None else {})}
    return replace(snapshot, series={names.get(name, name): view for name, view in snapshot.series.items()})


def _sort_key(value: str | float | None) -> tuple[int, float, str] | None:
    """Return a key that sorts numbers first, even those given as words of a command, then other words."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    try:
        return (0, float(value), "")
    except ValueError:
        return (1, 0.0, value.casefold() if isinstance(value, str) else "")


def columns(
    snapshots: Sequence[RunSnapshot], metric: str, here: Sequence[float | None] | None = None, where: str = ""
) -> list[Column]:
    """Return the columns of a comparison by one metric: results and the settings in which the runs differ.

    Args:
        here: the metric of each run at one position on the axis, which ``where`` names.
    """
    curves = [curve_of(snapshot, metric) for snapshot in snapshots]
    way = better(metric)
    averaged = "" if any(one.evaluation for one in curves if one is not None) else "avg "
    found = [Column(f"{averaged}at {where}", tuple(here), "here", way)] if here is not None else []
    if way is not None:
        best = _bests(snapshots, metric, "best")
        at = tuple(point and point.at for point in map(_best_point, curves))
        axes = {one.axis for one in curves if one is not None}
        found += [best, Column(f"at {axes.pop()}" if len(axes) == 1 else "at", at, "position", None, best.unread)]
    last = tuple(math.nan if one and one.last is None else one.last if one else None for one in curves)
    took = (one.lasted(until(one, one.seen)) for one in snapshots)
    steps = tuple(_float(one.numbers.step) for one in snapshots)
    rest = [Column("steps", steps, "position"), Column("took", tuple(took), "seconds")]
    if any(one.attempts > 1 for one in snapshots):  # "took" covers all attempts, the rest is where they led
        rest.append(Column("attempts", tuple(_float(one.attempts or None) for one in snapshots), "position"))
    return [
        *found,
        Column("last", last, "last", way),
        *(Column(_heading(one.name), one.values) for one in differences(snapshots)),
        *other_bests(snapshots, metric),
        *(one for one in rest if any(value is not None for value in one.values)),
    ]


def _heading(setting: str) -> str:
    """Return the heading of a setting; for a word of the command without a name, ``program`` or ``argument 2``."""
    place = setting.removeprefix("word ")
    return setting if is_named(setting) else "program" if place == "0" else f"argument {place}"


def other_bests(snapshots: Sequence[RunSnapshot], metric: str) -> list[Column]:
    """Return the best values of a few more metrics that have a better direction, validation metrics first."""
    names = [name for name in metrics_of(snapshots) if name != metric and better(name) is not None]
    return [_bests(snapshots, name, f"best {name}") for name in names[:_OTHER_BESTS]]


def _bests(snapshots: Sequence[RunSnapshot], metric: str, title: str) -> Column:
    """Return the best single value of each run, as it was reported, without smoothing."""
    curves = [curve_of(snapshot, metric) for snapshot in snapshots]
    pairs = enumerate(zip(curves, snapshots, strict=True))
    unread = frozenset(at for at, (one, run) in pairs if (run.brief if one is None else not one.complete))
    values = tuple(point and point.value for point in map(_best_point, curves))
    told = {place: broken_since(one, metric) for place, one in enumerate(snapshots) if values[place] is not None}
    broken = {place: words for place, words in told.items() if words}
    return Column(title, values, "best", better(metric), unread, broken)


def _best_point(curve: SeriesView | None) -> Best | None:
    """Return the best point; None until the whole curve has been read."""
    return best_point(curve) if curve is not None and curve.complete else None


def broken_since(snapshot: RunSnapshot, metric: str) -> str:
    """Return ``NaN/inf since step 1,200`` if the run's metric or loss is no longer finite; empty if both are finite."""
    meant = curve_of(snapshot, metric)
    for curve in (meant, curve_of(snapshot, "loss")):
        ends = curve.broken() if curve is not None else None
        if curve is not None and ends is not None:
            of = "" if curve is meant else "loss "
            where = "–".join(dict.fromkeys(whole(round(x) if curve.axis == "step" else round(x, 2)) for x in ends))
            return f"{of}{NOT_FINITE} since {curve.axis} {where}"
    return "" if snapshot.numbers.loss_is_finite else f"loss {NOT_FINITE}"


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def metrics_of(snapshots: Iterable[RunSnapshot]) -> list[str]:
    """Return the metrics that can be compared, each in one spelling: the loss, validation metrics, then the others."""
    names: dict[tuple[str, bool], str] = {}
    count = Counter[str]()
    for snapshot in snapshots:
        keys = {(measured(name), view.evaluation): name for name, view in snapshot.series.items()}
        count.update(names.setdefault(key, name) for key, name in keys.items())
    order = {
        name: (name != "loss", not evaluation, -count[name], reading_order(name))
        for (_, evaluation), name in names.items()
    }
    return sorted(order, key=lambda name: order[name])


def curve_of(snapshot: RunSnapshot, metric: str) -> SeriesView | None:
    """Return the curve of a metric, however this run spells it; a validation metric matches validation curves only."""
    found = snapshot.series.get(metric)
    if found is None:
        wanted = measured(metric), is_evaluation(metric)
        alike = (view for name, view in snapshot.series.items() if (measured(name), view.evaluation) == wanted)
        found = next(alike, None)
    return found if found is not None and len(found.x) else None


def compared_values(view: SeriesView) -> Sequence[float]:
    """Return the values to draw for comparison: validation values as they are, others smoothed."""
    return view.mean if view.evaluation else view.smooth


def value_at(view: SeriesView, x: float) -> float | None:
    """Return the compared value at ``x``: the last one up to there; None before the curve begins and after its end."""
    place = bisect_right(view.x, x) - 1
    if place < 0 or x > view.x[-1]:
        return None
    return compared_values(view)[place]


class Difference(NamedTuple):
    """One setting and its value in each run; None for a run that was started without it."""

    name: str
    values: tuple[str | None, ...]


def differences(snapshots: Sequence[RunSnapshot]) -> list[Difference]:
    """Return the settings that are not the same in all runs, in the order in which the runs name them.

    A run that has not begun has no device yet, which does not count as a difference.
    """
    found = [_chosen(snapshot) for snapshot in snapshots]
    names = dict.fromkeys(name for settings in found for name in settings)
    rows = (Difference(name, tuple(settings.get(name) for settings in found)) for name in names)
    return [row for row in rows if len({_meant(one) for one in row.values if one or row.name != "device"}) > 1]


def _meant(value: str | None) -> str | float | None:
    """Return what a value means, however it is spelled: ``1e-3`` equals 0.001, and ``yes`` equals ``True``."""
    try:
        number = None if value is None else float(value)
    except ValueError:
        return _SPELLED.get(str(value).lower(), value)
    return value if number != number else number


_SPELLED = {**dict.fromkeys(("yes", "true", "on"), True), **dict.fromkeys(("no", "false", "off"), False)}


def _chosen(snapshot: RunSnapshot) -> dict[str, str]:
    """Return the run's settings, except those that follow from where it runs: the interpreter, its own folder (a
    placeholder until it has begun), the checkpoint it resumed from."""
    own = str(snapshot.dir).removeprefix(f"{snapshot.host}:")
    left = snapshot.branch.checkpoint if snapshot.branch is not None else None
    return {
        name: value
        for name, value in settings_of(snapshot).items()
        if value not in (own, left, snapshot.begun_from)
        and not value.startswith((f"{own}/", "{run_dir}"))
        and not (name == "word 0" and _PYTHON.search(value))
    }


_PYTHON = re.compile(r"(?:^|/)python[\d.]*$")


def told_apart(snapshots: Sequence[RunSnapshot]) -> dict[str, str]:
    """Return, by id, what tells apart the runs that share a name: the settings in which they differ (``lr=0.1 ema``).

    The text is empty if the run has the same settings as all its namesakes.
    """
    found, names = dict[str, str](), dict[str, list[RunSnapshot]]()
    for one in snapshots:
        names.setdefault(one.name, []).append(one)
    for alike in (runs for runs in names.values() if len(runs) > 1):
        differing = differences(alike)
        for place, one in enumerate(alike):
            values = ((row.name, row.values[place]) for row in differing)
            words = (_word(name, value) for name, value in values if value is not None)
            found[one.run] = " ".join(words)
    return found


def _word(name: str, value: str) -> str:
    return value if not is_named(name) else name if value == FLAG else f"{name}={value}"


def full_name(snapshot: RunSnapshot, others: Sequence[RunSnapshot]) -> str:
    """Return the run's name; if others share it, followed by what tells it apart: differing settings, else its id."""
    alike = [one for one in others if one.name == snapshot.name and one.run != snapshot.run]
    apart = told_apart([snapshot, *alike])
    words = apart.get(snapshot.run, "")
    if not apart:
        return snapshot.name
    return f"{snapshot.name} ({words if words and list(apart.values()).count(words) == 1 else snapshot.run})"
