"""Join the curves that all witnesses of a run report, so that each quantity has one curve."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from ..model.snapshot import SeriesView
from ..series.metric_words import respelt

OPTIMIZER_AXIS, PRINTED_AXIS = "optimizer step", "printed step"
"""A training may have two step counts: say, the program prints micro-batches, and the agent sees optimizer steps."""
_STEPS = frozenset(("step", OPTIMIZER_AXIS, PRINTED_AXIS))
_FEWEST_COMPARED, _MOST_COMPARED = 3, 100
"""The fewest and the most pairs of points compared to decide whether two curves are the same quantity."""
_ENOUGH_DECIMALS, _NEAR = 3, 0.005
"""Values with fewer decimals than the first must also differ by less than the second, as a share."""
_MOST_ALIKE = 0.5
"""A curve is compared across different steps only if more than this share of its values are distinct."""
_CHANCE = 0.02
"""When values are matched regardless of step: the highest tolerated chance that an unrelated value matches."""
_FEW_POINTS, _MANY_TIMES = 60, 8
"""A printed loss or learning rate with fewer points than the first gives way to one with this many times its points."""
_OF_A_STEP = ("batch ", "step ", "iter ")
"""Ignored when names are compared: ``Batch loss`` is the loss, if its values are the same."""


class JoinedCurves:
    """Joins the curves of all witnesses of one run, and caches the result."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], tuple[SeriesView, SeriesView]] = {}
        self._compared: dict[tuple[str, str], tuple[SeriesView, SeriesView, bool]] = {}
        self.elsewhere: frozenset[str] = frozenset()
        """Names whose curves are part of others: their newest values are shown there."""

    def of(
        self, told: Sequence[tuple[str, Mapping[str, SeriesView]]], lead: str | None, counted_by: str | None = None
    ) -> dict[str, SeriesView]:
        """Return all curves by name; if several witnesses have one, the lead's, else the first one's.

        Curves that have not changed are the same objects as before.

        Args:
            told: curves by witness. The first witness is ours, with its own step count; the others count as the program
                does.
            lead: the witness whose loss is shown; while it has few points, the first witness's curve stands in.
            counted_by: the witness whose steps are those of the run; None: the one whose loss is shown.
        """
        found = self._of_all(told, lead, counted_by)
        found = self._once(found, told) if told[0][0] == "agent" else found
        self.elsewhere = frozenset(name for _, views in told for name in views if name not in found)
        return {n: view if view.name == n else self._renamed(view, n, view.axis) for n, view in found.items()}

    def _of_all(
        self, told: Sequence[tuple[str, Mapping[str, SeriesView]]], lead: str | None, counted_by: str | None
    ) -> dict[str, SeriesView]:
        told = _told_apart(told)
        own, losses = told[0][0], {witness: views["loss"] for witness, views in told if "loss" in views}
        first = own if _shows_more_of(losses.get(lead or ""), losses.get(own)) else lead
        order = sorted((item for item in told if item[1]), key=lambda item: item[0] != first)
        if len(order) < 2:
            return dict(order[0][1]) if order else {}
        found: dict[str, SeriesView] = {}
        spelt: dict[str, str] = {}
        for witness, views in order:
            twins = {name: spelt.get(respelt(name), name) for name in views}
            spelt = {respelt(name): name for name in views} | spelt
            for name, view in views.items():
                if (twin := twins[name]) != name and twin in found and twin not in views:
                    if view.count <= found[twin].count:
                        continue
                    del found[twin]
                shown, others = view, view.axis == "step" and (witness == own) != ((counted_by or order[0][0]) == own)
                if others or name == "loss":
                    of, shown = self._made.get((witness, name), (None, view))
                    axis = (OPTIMIZER_AXIS if witness == own else PRINTED_AXIS) if others else view.axis
                    if of is not view or shown.axis != axis:
                        shown = replace(view, axis=axis, told_by=witness if name == "loss" else "")
                        self._made[witness, name] = view, shown
                if name == "lr" and _shows_more_of(found.get(name), shown):
                    del found[name]  # a scheduler prints the learning rate only where it changes
                found.setdefault(f"loss ({witness})" if name == "loss" and name in found else name, shown)
        return found

    def _once(
        self, found: dict[str, SeriesView], told: Sequence[tuple[str, Mapping[str, SeriesView]]]
    ) -> dict[str, SeriesView]:
        """Drop curves that duplicate another one of similar name and equal values: a program may print ``Batch loss``
        and write ``train/loss`` for TensorBoard, while the agent sees the loss itself."""
        witnesses, alike = [witness for witness, _ in told], dict[tuple[str, str], list[str]]()
        for name in found if len(found) > 1 else ():
            plain = next((cut for one in witnesses if (cut := name.removesuffix(f" ({one})")) != name), name)
            group, _, bare = plain.rpartition("/")
            if group and bare in found and found[name].minimum != found[name].maximum:
                plain = bare  # ``data/n100`` beside a printed ``n100``
            names = alike.setdefault(_measured(plain), [])
            leads = name == plain and names[:1] != ["loss"]  # prefer the charted name, else one without a witness
            names.insert(0 if leads else len(names), name)
        candidates = [(name, names[:at]) for names in alike.values() for at, name in enumerate(names) if at]
        printed = [name for name in found if name not in told[0][1]]
        candidates += [(name, printed) for name in self._named_by_variables(found, told)]
        kept = dict(found)
        for name, others in candidates:
            if name not in kept:
                continue
            first = next((one for one in others if one in kept and self._are_one(kept, one, name)), None)
            if first is not None:
                mine, other = kept[first], kept.pop(name)
                more = mine if other.count <= mine.count else self._renamed(other, first, mine.axis)
                kept[first] = self._of_the_program(more, mine.told_by, other.told_by)
        return kept

    def _named_by_variables(
        self, found: Mapping[str, SeriesView], told: Sequence[tuple[str, Mapping[str, SeriesView]]]
    ) -> list[str]:
        """Return the losses of networks that take turns, to be compared by values alone: the agent names them after the
        program's variables, the output may not (``errG`` beside ``Loss_G``)."""
        own = [name for name in told[0][1] if name in found and "/" not in name and name not in ("loss", "lr")]
        return [name for name in own if not found[name].evaluation and _varies(found[name])] if len(told) > 1 else []

    def _of_the_program(self, view: SeriesView, *tellers: str) -> SeriesView:
        """Return the curve that stands for two; its witness is the program if both it and the agent report it."""
        teller = next((one for one in tellers if one != view.told_by), "")
        if not view.told_by or not teller:
            return view
        of, shown = self._made.get(("of the program", view.name), (None, view))
        if of is not view:
            shown = replace(view, told_by=teller) if view.told_by == "agent" else view
            self._made["of the program", view.name] = view, shown
        return shown

    def _are_one(self, curves: Mapping[str, SeriesView], one: str, other: str) -> bool:
        mine, theirs = curves[one], curves[other]
        before = self._compared.get((one, other))
        if before is None or before[0] is not mine or before[1] is not theirs:
            before = self._compared[one, other] = mine, theirs, _have_the_same_values(mine, theirs)
        return before[2]

    def _renamed(self, view: SeriesView, name: str, axis: str) -> SeriesView:
        of, shown = self._made.get(("", name), (None, view))
        if of is not view:
            shown = replace(view, name=name, axis=axis)
            self._made["", name] = view, shown
        return shown


def _measured(name: str) -> tuple[str, str]:
    from ..formats.measures import quantity  # imported late: the first frame of a list does not need it

    on, what = quantity(name)
    for words in _OF_A_STEP:
        what = what.removeprefix(words)
    return on, what


def _have_the_same_values(one: SeriesView, other: SeriesView) -> bool:
    """True if the curves have the same values wherever both have one, perhaps with fewer digits in one of them."""
    if one.evaluation != other.evaluation:
        return False
    fewest = 1 if one.evaluation else _FEWEST_COMPARED
    if abs(one.count - other.count) <= 1 and abs(len(one.values) - len(other.values)) <= 1:
        pairs = list(zip(one.values, other.values, strict=False))  # one of them may not have the newest value yet
        if _are_the_same(pairs, fewest):
            return True
    if one.axis != other.axis and not {one.axis, other.axis} <= _STEPS:
        return False
    fewer, more = sorted((one, other), key=lambda view: view.count)
    if _are_the_same(list(_at_the_same(fewer, more)), fewest):
        return True
    # Match regardless of step: a value reported before its step is made is placed at the previous one. A curve that
    # hardly varies would match anything.
    return _varies(fewer) and _are_the_same(_nearest(fewer, more), _FEWEST_COMPARED)


def _nearest(fewer: SeriesView, more: SeriesView) -> list[tuple[float, float]]:
    """Pair each distinct value of one curve with the nearest value of the other, whatever their steps: one of two
    networks may pause while the other makes steps. Empty if so many values would match anything."""
    known = sorted(filter(math.isfinite, more.values))
    apart = 10.0 ** -max(map(_decimals, known[:_MOST_COMPARED]), default=0)
    if not known or len(known) * apart > _CHANCE * (known[-1] - known[0]):
        return []  # with so many values, one would be near anything
    return [
        (value, min(known[max(0, place - 1) : place + 1], key=lambda one: abs(one - value)))
        for value in dict.fromkeys(filter(math.isfinite, fewer.values))
        for place in (bisect_left(known, value),)
    ]


def _varies(view: SeriesView) -> bool:
    return len(set(view.values)) > _MOST_ALIKE * len(view.values)


def _are_the_same(pairs: list[tuple[float, float]], fewest: int) -> bool:
    if len(pairs) < fewest:
        return False
    pairs = [pair for pair in pairs[:: max(1, len(pairs) // _MOST_COMPARED)] if all(map(math.isfinite, pair))]
    decimals = min((max(map(_decimals, column)) for column in zip(*pairs, strict=True)), default=None)
    if decimals is None:
        return False
    # Few decimals may come from round values, not from the precision of the output.
    share = math.inf if decimals >= _ENOUGH_DECIMALS else _NEAR
    return all(
        abs(mine - theirs) <= max(min(0.51 * 10.0**-decimals, share * abs(theirs)), 1e-6 * abs(theirs))
        for mine, theirs in pairs
    )


def _at_the_same(fewer: SeriesView, more: SeriesView) -> Iterator[tuple[float, float]]:
    for x, value in zip(fewer.x, fewer.values, strict=True):
        place = bisect_left(more.x, x)
        if place < len(more.x) and more.x[place] == x:
            yield value, more.values[place]


def _decimals(value: float) -> int:
    return len(f"{Decimal(repr(value)):f}".partition(".")[2])


def _told_apart(
    told: Sequence[tuple[str, Mapping[str, SeriesView]]],
) -> Sequence[tuple[str, Mapping[str, SeriesView]]]:
    """Add ``(agent)`` to the names of losses of several networks that both the agent and the program report."""
    (own, seen), *others = told
    if own != "agent":
        return told
    losses = {name for _, views in others for name in views if name != "loss" and name.endswith("loss")}
    printed = {name for name in losses.intersection(seen) if not seen[name].evaluation}
    if not printed:
        return told
    return [(own, {f"{name} ({own})" if name in printed else name: view for name, view in seen.items()}), *others]


def _shows_more_of(printed: SeriesView | None, seen: SeriesView | None) -> bool:
    """True if ``printed``, a loss or learning rate, has so few points that ``seen`` should replace it.

    Both must be the same quantity: the agent may see the sum over a batch where the program prints the mean.
    """
    if printed is None or seen is None or not 0 < printed.count < _FEW_POINTS:
        return False
    value, low, high = printed.last, seen.minimum, seen.maximum
    is_another = value and low and high and low > 0 and not low / 2 <= value <= 2 * high
    return seen.count > _MANY_TIMES * printed.count and not is_another
