"""What a chart shows: the curves of one metric, taken from a snapshot and put on the chosen axis. Pure."""

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
"""What precedes a metric's best value: it is the lowest one, or the highest."""
_FINE = 4
"""Columns of a curve for each column of the chart, which is two dots wide: more of them could not be seen."""
_FROM = "checkpoint"
"""What the start event of an attempt says it begins from."""
_COARSE_SHARE = 0.05
"""A window is read again only if coarse points span more of it than this: the newest ones of a live run do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartData:
    """What is drawn. ``steps_per_epoch`` turns a step axis into epochs, where it is known."""

    name: str
    train: SeriesView | None = None
    evaluation: SeriesView | None = None
    steps_per_epoch: float | None = None
    slow: tuple[Stretch, ...] = ()
    """Steps in which the training was slower than before; shown only on an axis of steps."""
    now: str = ""
    """The newest value of the training curve as the rest of the screen shows it; empty: the curve's own."""
    ghosts: tuple[SeriesView, ...] = ()
    """The curves of the best earlier run, drawn behind these."""
    said: tuple[str, ...] = ()
    """Which run that is and how this one compares, in full words first, then in fewer."""
    pinned: SeriesView | None = None
    """A curve of another metric, drawn beside these."""
    by_time: bool = False
    """Curves of steps, put on an axis of time."""
    unread: bool = False
    """Whether the history has not been read to its end, so that a curve that is missing may still come."""
    ended: bool = False
    """Whether the run has ended: what it has not reported by now it never will."""
    resumed: Mapping[int, bool] = field(default_factory=dict)
    """Whether an attempt began from a checkpoint, by its number; those that are not known are left out."""

    @property
    def curves(self) -> tuple[SeriesView, ...]:
        return tuple(view for view in (self.train, self.evaluation) if view is not None and len(view.x))

    @property
    def axis(self) -> str:
        """What x counts: ``step``, ``epoch``, ``time`` ..."""
        return self.curves[0].axis if self.curves else "step"

    @property
    def before(self) -> tuple[Piece, ...]:
        """What the run that this one branched off from measured, before the training curve begins."""
        train = self.train
        pieces = train.superseded if train is not None and len(train.x) else ()
        return tuple(piece for piece in pieces if train is not None and len(piece.x) and piece.x[0] < train.x[0])

    def takeovers(self) -> list[tuple[float, str]]:
        """Where attempts took over, and how, in a word.

        An attempt that does not say what it began from, but measures everything again, has begun from the start.
        """
        curve = self.curves[0]
        attempts = curve.mark_attempts or [0] * len(curve.attempt_marks)
        known = ((mark, self.resumed.get(number)) for mark, number in zip(curve.attempt_marks, attempts, strict=True))
        resumed = ((mark, not mark <= curve.begin if told is None else told) for mark, told in known)
        return [(mark, "resumed" if from_there else "restarted") for mark, from_there in resumed]

    def extent(self) -> tuple[float, float] | None:
        """The first and the last x of all curves."""
        curves: list[SeriesView | Piece] = [*self.curves, *self.before]
        positions = [x for curve in curves for x in (curve.x[0], curve.x[-1]) if math.isfinite(x)]
        return (min(positions), max(positions)) if positions else None


def metric_names(snapshot: RunSnapshot) -> list[str]:
    """What can be drawn: losses first, speeds last.

    A validation series is drawn over its training series, not alone.
    """
    over = validations(snapshot)
    names = [name for name in snapshot.series if name not in over]
    ranks = ((name != "loss", "loss" not in name.lower(), is_of_pace(name), reading_order(name)) for name in names)
    return [name for _, name in sorted(zip(ranks, names, strict=True))]


def validations(snapshot: RunSnapshot) -> Mapping[str, str]:
    """The curves that are drawn over another one, each with that one's name."""
    return drawn_over(tuple((name, view.evaluation, view.axis) for name, view in snapshot.series.items()))


def none_reported(what: str, *, ended: bool) -> str:
    """The words for missing numbers of a kind."""
    return f"this run reported no {what}" if ended else f"no {what} reported yet"


def has_said_all(snapshot: RunSnapshot) -> bool:
    """Whether it has ended, as far as the snapshot tells."""
    return not snapshot.state.active and snapshot.state is not State.UNREADABLE


def is_of_the_agent(snapshot: RunSnapshot) -> bool:
    """Whether the curve of the loss is the agent's, while the newest loss is one of few that were printed: these have a
    curve beside it that says so."""
    return f"loss ({snapshot.numbers.told_by.get('loss')})" in snapshot.series


def chart_data(snapshot: RunSnapshot, name: str) -> ChartData:
    """The curve of a metric, and of its validation metric if it has one, by step."""
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
    """The same with what the best earlier run measured of these metrics; its validation is mentioned first."""
    names = [name for name, view in snapshot.series.items() if view is data.train or view is data.evaluation]
    names.sort(key=lambda name: not snapshot.series[name].evaluation)
    curves = tuple(ghost.series[name] for name in names if name in ghost.series)
    words = next((ghost.words[name] for name in names if name in ghost.words), ())
    best = f"best: {clean(ghost.name, 80)}"
    shorter = ["; ".join(words[:count]) for count in range(len(words), 0, -1)]
    said = (f"{best} · {shorter[0]}", *shorter) if shorter else (best,)
    return replace(data, ghosts=curves, said=said) if curves else data


def steps_per_epoch(snapshot: RunSnapshot) -> float | None:
    """Steps per epoch as reported, else as planned."""
    known = snapshot.numbers
    if known.epoch_steps:
        return float(known.epoch_steps)
    return known.steps / known.epochs if known.steps and known.epochs else None


def over_time(data: ChartData) -> ChartData | None:
    """The same curves over the time since the first point; None if no point tells when it was measured."""
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
        # Each run from its own beginning; what is said of it is said of a step all the same.
        pinned=moved_to_time(data.pinned, start, unit) if data.pinned is not None else None,
        ghosts=tuple(moved_to_time(ghost, theirs, unit) for ghost in data.ghosts) if theirs is not None else (),
    )


def known_times(curve: SeriesView) -> list[float]:
    """When its points were measured, as far as that is known; nothing if they all came at once."""
    times = [moment for moment in curve.times if math.isfinite(moment)]
    return times if times and min(times) < max(times) else []


def time_unit(longest_seconds: float) -> tuple[str, float]:
    """Hours if the axis spans any, else minutes."""
    return ("h", 3600.0) if longest_seconds > 2 * 3600 else ("min", 60.0)


def moved_to_time(curve: SeriesView, start: float, unit: tuple[str, float]) -> SeriesView:
    """Without the points that have no time (they were there before anybody looked) and those measured again later."""
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
    """Whether the part in view holds more points than its columns tell apart, and more could be shown."""
    inside = [place for place, x in enumerate(curve.x) if space.x.low <= x <= space.x.high]
    if not inside or not curve.complete or not curve.points or len(inside) >= _FINE * space.columns:
        return False
    joined = (place for place in inside if curve.points[place] > 1)
    width = sum(curve.x[place] - (curve.x[place - 1] if place else space.x.low) for place in joined)
    return width > space.x.span * _COARSE_SHARE


class Reading(NamedTuple):
    """What a curve says at one place: from where to where it reaches, and the least, mean and greatest value there. For
    a single point these are the same, NaN if it is not finite."""

    first: float
    last: float
    low: float
    mean: float
    high: float
    broken: bool = False
    """Whether some, but not all, of its points are not finite."""


def reading(curve: SeriesView, space: Frame, cursor: float) -> Reading:
    """The points in the column of cells at ``cursor``, else the one closest to it. The curve must not be empty."""
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
