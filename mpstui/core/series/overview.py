"""The metrics of a run as a list that fits the screen: duplicates are merged, names with a common prefix folded."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from operator import eq

from ..model.patterns import line_pattern
from ..model.snapshot import RunSnapshot, SeriesView
from .metric_words import NAMES_REMEMBERED, is_of_pace, measured, reading_order, respelt

_FEWEST_REPEATED, _MOST_COMPARED = 10, 100
"""A curve that repeats at least this many distinct values of another is a duplicate; at most this many are compared."""
_MOST_NEIGHBOURS, _NEAR, _MOST_JOINED = 4, 50, 200
"""How many metrics with close first values are compared, how close (a 50th), and in runs of at most how many."""
_FEWEST_ALIKE = 3
"""Fewer metrics with a common prefix are not worth a fold."""
_MOST_FOLDS = 40
"""If this many folds do not make the list fit, more would not either."""
_BEGINNING = re.compile(r"[^/_.\s-]+[/_.\s-]+")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a run, with its history or only its newest value."""

    name: str
    view: SeriesView | None = None
    value: float | None = None
    """The newest value; None if not finite, or unknown."""
    also: tuple[str, ...] = ()
    """Other names under which the same values were reported, exactly or with fewer digits."""

    @property
    def otherwise(self) -> str | None:
        """An alias with a different meaning: ``losses/l_pix`` for ``loss``; None if there is none."""
        return next((name for name in self.also if measured(name) != measured(self.name)), None)


@dataclass(frozen=True, slots=True)
class Fold:
    """The heading of a group of metrics with a common prefix."""

    beginning: str
    count: int
    is_open: bool


Entry = Metric | Fold


def metrics_of(snapshot: RunSnapshot, pattern: str = "") -> list[Metric]:
    """Return every metric once: losses first, then the others by name, with those about speed and resources last.

    Args:
        pattern: a regular expression that the names must match; case matters only if it contains capitals.

    Raises:
        PatternMistake: the pattern is not a regular expression, or could take forever.
    """
    wanted = line_pattern(pattern, re.IGNORECASE if pattern == pattern.lower() else 0) if pattern else None
    numbers = snapshot.numbers
    values = {name: value for name, value in (("loss", numbers.loss), ("lr", numbers.lr)) if value is not None}
    known = {**values, **numbers.metrics}
    alone = {name: Metric(name, value=value) for name, value in known.items() if name not in snapshot.series}
    told = {name: Metric(name, view, view.last) for name, view in snapshot.series.items()}
    found: list[Metric] = []
    alike: dict[str, list[int]] = {}
    for metric in sorted({**alone, **told}.values(), key=lambda one: _rank(one.name)):
        places = alike.setdefault(measured(metric.name), [])
        twin = next((place for place in places if _same(found[place], metric)), None)
        if twin is None:
            places.append(len(found))
            found.append(metric)
        else:
            kept, other = (found[twin], metric) if found[twin].view is not None else (metric, found[twin])
            found[twin] = replace(kept, also=(*kept.also, other.name, *other.also))
    found = _without_repeated(found)
    return [one for one in found if wanted is None or any(map(wanted.search, (one.name, *one.also)))]


def _without_repeated(metrics: list[Metric]) -> list[Metric]:
    """Merge each metric that repeats the values of another into the earlier one, keeping the order: a program that
    prints a value may also log it, under another name, with other digits and on another axis."""
    if len(metrics) > _MOST_JOINED:
        return metrics
    views = [(at, one.view) for at, one in enumerate(metrics) if one.view and one.view.minimum != one.view.maximum]
    begun = sorted((view.first, place, view) for place, view in views if view.first is not None)
    joined: dict[int, int] = {}

    def kept(place: int) -> int:
        return kept(joined[place]) if place in joined else place

    for at, (first, place, view) in enumerate(begun):
        for near, other, its in begun[at + 1 : at + 1 + _MOST_NEIGHBOURS]:
            if near - first > abs(first) / _NEAR:
                break
            stays, goes = sorted((kept(place), kept(other)))
            if stays != goes and (_repeats(view, its) or _repeats(its, view)):
                joined[goes] = stays
    also: dict[int, tuple[str, ...]] = {}
    for goes in sorted(joined):
        also[kept(goes)] = (*also.get(kept(goes), ()), metrics[goes].name, *metrics[goes].also)
    whole = enumerate(metrics)
    return [replace(one, also=(*one.also, *also.get(at, ()))) for at, one in whole if at not in joined]


def _repeats(printed: SeriesView, told: SeriesView) -> bool:
    """True if one curve has the values of the other, in the same order, with fewer digits.

    The newest value may not have reached both yet.
    """
    length = min(len(printed.values), len(told.values))
    apart = max(abs(printed.count - told.count), abs(len(printed.values) - len(told.values)))
    if apart > 1 or length < _FEWEST_REPEATED:
        return False
    for at in (length // 2, length - 2):  # a cheap test first: most differ in one of these
        if abs(printed.values[at] - told.values[at]) > abs(told.values[at]) / _NEAR:
            return False
    stride = max(1, length // _MOST_COMPARED)
    values, others = printed.values[: length - 1 : stride], told.values[: length - 1 : stride]
    if len(set(values)) < _FEWEST_REPEATED or all(map(eq, values, others)):
        return False  # exactly equal curves may be two quantities: a total, and its only part
    decimals = max(len(f"{Decimal(repr(value)):f}".partition(".")[2]) for value in values)
    return all(
        mine == theirs or abs(mine - theirs) <= 0.51 * 10.0**-decimals
        for mine, theirs in zip(values, others, strict=True)
    )


def measured_at(metric: Metric, step: float) -> tuple[float, float] | None:
    """Return the last value measured up to a step, and its step; None if there is none or the axis is not the step."""
    view = metric.view
    place = bisect_right(view.x, step) - 1 if view is not None and view.axis == "step" else -1
    if view is None or not 0 <= place < len(view.values):
        return None
    return view.values[place], view.x[place]


@lru_cache(NAMES_REMEMBERED)
def _rank(name: str) -> tuple[object, ...]:
    return measured(name) != "loss", name != "loss", is_of_pace(name), reading_order(name)


def _same(one: Metric, other: Metric) -> bool:
    """True if two names for one quantity have the same values; without a history, the newest value decides.

    Two spellings of one name are the same if only one has a curve, whatever the values: the curve's is the newer one.
    """
    if (one.view is None) != (other.view is None) and respelt(one.name) == respelt(other.name):
        return True
    if one.value != other.value:
        return False
    first, second = one.view, other.view
    if first is None or second is None:
        view = first or second
        return one.value is not None and (view is None or not view.evaluation)
    alike = (first.evaluation, first.axis, first.count, first.minimum, first.maximum, first.first) == (
        second.evaluation, second.axis, second.count, second.minimum, second.maximum, second.first
    )  # fmt: skip
    return alike and all(
        array("d", mine).tobytes() == array("d", theirs).tobytes()
        for mine, theirs in ((first.x, second.x), (first.values, second.values), (first.mean, second.mean))
    )


def arranged(metrics: Sequence[Metric], lines: int, opened: Collection[str] = ()) -> list[Entry]:
    """Arrange the metrics in at most ``lines`` lines if folding can achieve that; the largest groups are folded first.

    Args:
        opened: prefixes whose metrics stay visible below their heading.
    """
    if len(metrics) <= lines:
        return list(metrics)
    named = {one.name: one for one in metrics}
    found = _arranged(tuple(named), lines, frozenset(opened))
    return [one if isinstance(one, Fold) else named[one.name] for one in found]


@lru_cache(8)
def _arranged(names: tuple[str, ...], lines: int, opened: frozenset[str]) -> list[Entry]:
    """Do the work of :func:`arranged`, cached by names: 1 ms instead of 50 ms for 5,000 metrics, twice per refresh."""
    metrics = [Metric(name) for name in names]
    folds: list[str] = []
    entries: list[Entry] = list(metrics)
    for beginning in _beginnings(metrics):
        if (len(entries) > lines and len(folds) < _MOST_FOLDS) or beginning in opened:
            folds.append(beginning)
            entries = _folded(entries, [beginning], opened)
    closed = [one for one in folds if one not in opened] if len(entries) <= lines else []
    for beginning in closed:  # a large fold may have made a small one unnecessary
        without = _folded(metrics, [one for one in folds if one != beginning], opened)
        if len(without) <= lines:
            folds, entries = [one for one in folds if one != beginning], without
    return entries


def _folded(metrics: Sequence[Entry], folds: Sequence[str], opened: Collection[str]) -> list[Entry]:
    entries: list[Entry] = list(metrics)
    for beginning in folds:
        places = [place for place, one in enumerate(entries) if _begins(one, beginning)]
        if len(places) >= _FEWEST_ALIKE:
            is_open = beginning in opened
            heading, members = Fold(beginning, len(places), is_open), [entries[place] for place in places]
            rest = [one for one in entries[places[0] :] if not _begins(one, beginning)]
            entries = [*entries[: places[0]], heading, *(members if is_open else []), *rest]
    return entries


def _begins(entry: Entry, beginning: str) -> bool:
    return isinstance(entry, Metric) and entry.name.startswith(beginning) and measured(entry.name) != "loss"


def _beginnings(metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield prefixes of names that end at a word boundary, the most common first.

    A prefix is left out if a longer one covers more than half of its names.
    """
    counts: dict[str, int] = {}
    inside: dict[str, set[str]] = {}
    for metric in metrics:
        if measured(metric.name) != "loss":
            at, before = 0, ""
            while (word := _BEGINNING.match(metric.name, at)) and word.end() < len(metric.name):
                at = word.end()
                beginning = metric.name[:at]
                counts[beginning] = counts.get(beginning, 0) + 1
                inside.setdefault(before, set()).add(beginning)
                before = beginning
    for beginning, count in sorted(counts.items(), key=lambda item: (-item[1], -len(item[0]))):
        if count >= _FEWEST_ALIKE and not any(counts[other] * 2 > count for other in inside.get(beginning, ())):
            yield beginning
