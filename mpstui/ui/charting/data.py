"""The data of a chart: the curves of one metric, taken from a snapshot and put on the chosen axis. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ...core.model.snapshot import Piece, RunSnapshot, SeriesView, State
from ...core.present import loss_text
from ...core.series.direction import Better
from ...core.series.metric_words import drawn_over, is_of_pace, reading_order
from ..rows import clean
from .scale import Frame

if TYPE_CHECKING:
    from ...core.runs.ghost import Ghost
    from ...core.telemetry.model import Stretch

BEST_SIGNS = {Better.LOWER: "▼", Better.HIGHER: "▲"}
"""The sign before a metric's best value: the lowest or the highest."""
_FINE = 4
"""Curve columns per chart column, which is two dots wide: a finer curve would look the same."""
_FROM = "checkpoint"
"""The field of an attempt's start event that says which checkpoint it begins from."""
_COARSE_SHARE = 0.05
"""A window is read again only if coarse points span more than this share: the newest ones of a live run do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartData:
    """What is drawn. ``steps_per_epoch`` converts a step axis into epochs, if known."""

    name: str
    train: SeriesView | None = None
    evaluation: SeriesView | None = None
    steps_per_epoch: float | None = None
    slow: tuple[Stretch, ...] = ()
    """Steps in which the training was slower than before; shown only on a step axis."""
    now: str = ""
    """The newest training value as the rest of the screen shows it; empty: the curve's own."""
    ghosts: tuple[SeriesView, ...] = ()
    """The curves of the best earlier run, drawn behind these."""
    said: tuple[str, ...] = ()
    """Which run that is and how this one compares, in versions from long to short."""
    pinned: SeriesView | None = None
    """A curve of another metric, drawn beside these."""
    by_time: bool = False
    """True for curves of steps put on a time axis."""
    unread: bool = False
    """True while the history has not been read completely, so that a missing curve may still appear."""
    ended: bool = False
    """True if the run has ended: what it has not reported by now it never will."""
    resumed: Mapping[int, bool] = field(default_factory=dict)
    """Whether an attempt began from a checkpoint, by attempt number; unknown ones are missing."""

    @property
    def curves(self) -> tuple[SeriesView, ...]:
        return tuple(view for view in (self.train, self.evaluation) if view is not None and len(view.x))

    @property
    def axis(self) -> str:
        """What x counts: ``step``, ``epoch``, ``time`` ..."""
        return self.curves[0].axis if self.curves else "step"

    @property
    def before(self) -> tuple[Piece, ...]:
        """What the run that this one branched off from measured before the training curve begins."""
        train = self.train
        pieces = train.superseded if train is not None and len(train.x) else ()
        return tuple(piece for piece in pieces if train is not None and len(piece.x) and piece.x[0] < train.x[0])

    def takeovers(self) -> list[tuple[float, str]]:
        """Where attempts took over, and how, in a word.

        An attempt that does not say what it began from, but measures everything again, started from scratch.
        """
        curve = self.curves[0]
        attempts = curve.mark_attempts or [0] * len(curve.attempt_marks)
        known = ((mark, self.resumed.get(number)) for mark, number in zip(curve.attempt_marks, attempts, strict=True))
        resumed = ((mark, not mark <= curve.begin if told is None else told) for mark, told in known)
        return [(mark, "resumed" if from_there else "restarted") for mark, from_there in resumed]

    def extent(self) -> tuple[float, float] | None:
        """The smallest and largest x of all curves."""
        curves: list[SeriesView | Piece] = [*self.curves, *self.before]
        positions = [x for curve in curves for x in (curve.x[0], curve.x[-1]) if math.isfinite(x)]
        return (min(positions), max(positions)) if positions else None


def metric_names(snapshot: RunSnapshot) -> list[str]:
    """Return the metrics that can be drawn: losses first, speeds last.

    A validation series is drawn over its training series, not alone.
    """
    over = validations(snapshot)
    names = [name for name in snapshot.series if name not in over]
    ranks = ((name != "loss", "loss" not in name.lower(), is_of_pace(name), reading_order(name)) for name in names)
    return [name for _, name in sorted(zip(ranks, names, strict=True))]


def validations(snapshot: RunSnapshot) -> Mapping[str, str]:
    """Return the curves that are drawn over another one, mapped to that one's name."""
    return drawn_over(tuple((name, view.evaluation, view.axis) for name, view in snapshot.series.items()))


def none_reported(what: str, *, ended: bool) -> str:
    """Return the text for missing numbers of a kind."""
    return f"this run reported no {what}" if ended else f"no {what} reported yet"


def has_said_all(snapshot: RunSnapshot) -> bool:
    """True if it has ended, as far as the snapshot tells."""
    return not snapshot.state.active and snapshot.state is not State.UNREADABLE


def is_of_the_agent(snapshot: RunSnapshot) -> bool:
    """True if the loss curve is the agent's while the newest loss is one of the few printed: a separate curve shows
    those."""
    return f"loss ({snapshot.numbers.told_by.get('loss')})" in snapshot.series


def chart_data(snapshot: RunSnapshot, name: str) -> ChartData:
    """Return the curve of a metric over steps, with its validation curve if it has one."""
    shown: SeriesView | None = snapshot.series.get(name)
    over = validations(snapshot)
    evaluation = next((snapshot.series[above] for above, below in over.items() if below == name), None)
    if shown is not None and shown.evaluation:
        shown, evaluation = None, shown
    unread = snapshot.loading or snapshot.brief
    epoch = steps_per_epoch(snapshot)
    known = snapshot.numbers.loss is not None or not snapshot.numbers.loss_is_finite
    now = loss_text(snapshot.numbers) if name == "loss" and known and not is_of_the_agent(snapshot) else ""
    return ChartData(
        name=name,
        train=shown,
        evaluation=evaluation,
        steps_per_epoch=epoch,
        now=now,
        unread=unread,
        ended=has_said_all(snapshot),
        resumed={one.attempt: one.details[_FROM] is not None for one in snapshot.events if _FROM in one.details},
    )


def with_ghost(data: ChartData, snapshot: RunSnapshot, ghost: Ghost) -> ChartData:
    """Add the curves of the best earlier run for these metrics; its validation is mentioned first."""
    names = [name for name, view in snapshot.series.items() if view is data.train or view is data.evaluation]
    names.sort(key=lambda name: not snapshot.series[name].evaluation)
    curves = tuple(ghost.series[name] for name in names if name in ghost.series)
    words = next((ghost.words[name] for name in names if name in ghost.words), ())
    best = f"best: {clean(ghost.name, 80)}"
    shorter = ["; ".join(words[:count]) for count in range(len(words), 0, -1)]
    said = (f"{best} · {shorter[0]}", *shorter) if shorter else (best,)
    return replace(data, ghosts=curves, said=said) if curves else data


def steps_per_epoch(snapshot: RunSnapshot) -> float | None:
    """Steps per epoch as reported, otherwise as planned."""
    known = snapshot.numbers
    if known.epoch_steps:
        return float(known.epoch_steps)
    return known.steps / known.epochs if known.steps and known.epochs else None


def over_time(data: ChartData) -> ChartData | None:
    """Put the curves on an axis of time since the first point; None if no point has a time."""
    times = [moment for curve in data.curves for moment in known_times(curve)]
    if not times:
        return None
    start, unit = min(times), time_unit(max(times) - min(times))
    train, evaluation = data.train, data.evaluation
    theirs = min((moment for ghost in data.ghosts for moment in known_times(ghost)), default=None)
    return replace(
        data,
        by_time=data.axis == "step",
        train=moved_to_time(train, start, unit) if train is not None else None,
        evaluation=moved_to_time(evaluation, start, unit) if evaluation is not None else None,
        # Each run counts from its own beginning; text about it still refers to steps.
        pinned=moved_to_time(data.pinned, start, unit) if data.pinned is not None else None,
        ghosts=tuple(moved_to_time(ghost, theirs, unit) for ghost in data.ghosts) if theirs is not None else (),
    )


def known_times(curve: SeriesView) -> list[float]:
    """Return when its points were measured, as far as known; nothing if they all arrived at once."""
    times = [moment for moment in curve.times if math.isfinite(moment)]
    return times if times and min(times) < max(times) else []


def time_unit(longest_seconds: float) -> tuple[str, float]:
    """Return hours if the axis spans more than two, otherwise minutes."""
    return ("h", 3600.0) if longest_seconds > 2 * 3600 else ("min", 60.0)


def moved_to_time(curve: SeriesView, start: float, unit: tuple[str, float]) -> SeriesView:
    """Drop points without a time (they were there before anybody looked) and those measured again later."""
    kept = [place for place, time in enumerate(curve.times) if math.isfinite(time)]

    def those(column: Sequence[float]) -> list[float]:
        return [column[place] for place in kept] if column else []

    attempts = curve.mark_attempts or [0] * len(curve.attempt_marks)
    placed = [(mark, one) for mark, one in zip(curve.attempt_marks, attempts, strict=True) if mark <= curve.x[-1]]
    marks = [(curve.times[bisect_left(curve.x, mark)], attempt) for mark, attempt in placed]
    marks = [mark for mark in marks if math.isfinite(mark[0])]
    return replace(
        curve,
        axis=unit[0],
        x=[(curve.times[place] - start) / unit[1] for place in kept],
        low=those(curve.low),
        high=those(curve.high),
        mean=those(curve.mean),
        smooth=those(curve.smooth),
        attempt_marks=[(mark - start) / unit[1] for mark, _ in marks],
        mark_attempts=[attempt for _, attempt in marks],
        gaps=(),
        superseded=(),
        times=those(curve.times),
        values=those(curve.values),
        points=those(curve.points),
        begin=math.nan,
    )


def is_coarse(curve: SeriesView, space: Frame) -> bool:
    """True if the part in view joins points that the chart could tell apart, and reading again would show more."""
    inside = [place for place, x in enumerate(curve.x) if space.x.low <= x <= space.x.high]
    if not inside or not curve.complete or not curve.points or len(inside) >= _FINE * space.columns:
        return False
    joined = (place for place in inside if curve.points[place] > 1)
    width = sum(curve.x[place] - (curve.x[place - 1] if place else space.x.low) for place in joined)
    return width > space.x.span * _COARSE_SHARE


class Reading(NamedTuple):
    """What a curve says at one place: the range of x it covers, and the minimum, mean and maximum value there. For a
    single point these are equal, NaN if it is not finite."""

    first: float
    last: float
    low: float
    mean: float
    high: float
    broken: bool = False
    """True if some, but not all, of its points are not finite."""


def reading(curve: SeriesView, space: Frame, cursor: float) -> Reading:
    """Read the points in the cell column at ``cursor``, or else the closest one. The curve must not be empty."""
    width = space.x.span / max(1, space.columns - 1)
    column = round((cursor - space.x.low) / width)
    inside = [place for place, x in enumerate(curve.x) if abs((x - space.x.low) / width - column) <= 0.5]
    nearest = min(inside or range(len(curve.x)), key=lambda place: abs(curve.x[place] - cursor))
    places = inside or [nearest]
    held = {place: curve.points[place] if curve.points else 1.0 for place in places}
    broken = not {curve.x[place] for place in places}.isdisjoint(curve.gaps)
    alone = len(places) == 1 and held[nearest] <= 1 and not (broken and held[nearest])
    if alone or not curve.complete:  # what lies between the points of a partly read curve is unknown
        return Reading(curve.x[nearest], curve.x[nearest], *(curve.values[nearest],) * 3)
    first = curve.begins(places[0]) if held[places[0]] > 1 else curve.x[places[0]]
    known = [place for place in places if curve.mean[place] == curve.mean[place]]
    count = sum(held[place] for place in known)
    return Reading(
        first,
        curve.x[places[-1]],
        min((curve.low[place] for place in known), default=math.nan),
        sum(curve.mean[place] * held[place] for place in known) / count if count else math.nan,
        max((curve.high[place] for place in known), default=math.nan),
        broken,
    )
