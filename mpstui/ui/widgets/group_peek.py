"""A preview of the selected group below the list: the curves of its runs over each other, and a legend. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core import present as shown
from ...core.model.snapshot import RunSnapshot
from ...core.runs.listing import Group, best_in, best_of
from ...core.series.direction import Better, better
from ..charting.plot import ChartView
from ..rows import EMPTY, Row, Span, clean, cut, fit, row, width_of
from ..theme import RUN_ROLES
from .overlay import LABELS, best_axis, draw_overlay, overlay
from .run_row import what_differs

MOST_CURVES = 8
_LEAST_CHART = 6
_OVER = {"step": "steps", "epoch": "epochs", "time": "time"}


def chosen(group: Group) -> tuple[RunSnapshot, ...]:
    """Return the runs whose curves are drawn: the best by the group's metric, then those without a value of it."""
    found = best_in(group.runs)
    if found is None:
        return tuple(one for one in group.runs if one.numbers.loss is not None)[:MOST_CURVES]
    metric = found[1]
    sign = -1.0 if better(metric) is Better.HIGHER else 1.0

    def rank(run: RunSnapshot) -> tuple[bool, float]:
        judged = best_of(run)
        known = judged is not None and judged[0] == metric
        return not known, sign * judged[1] if judged is not None and known else 0.0

    begun = [one for one in group.runs if one.numbers.loss is not None or one.extremes]
    return tuple(sorted(begun, key=rank)[:MOST_CURVES])


def group_peek(group: Group, runs: Sequence[RunSnapshot], width: int, height: int) -> list[Row]:
    """A line that says what is drawn, a legend with the best first, and the curves of ``runs``; as much as fits."""
    if not runs:
        waits = sum(one.state == "queued" for one in group.runs)
        text = f"{f'{waits} of its runs wait; ' if waits else ''}none has reported a metric yet"
        return [row((f" {cut(text, width - 1)}", "dim"))]
    found = best_in(runs)
    metric = found[1] if found is not None else "loss"
    axis = best_axis(runs, metric)
    many = f"{len(runs)} of {len(group.runs)} runs" if len(runs) < len(group.runs) else f"{len(runs)} runs"
    way = better(metric)
    order = "" if way is None else ", highest first" if way is Better.HIGHER else ", lowest first"
    name = f" {cut(clean(metric), 24)}"
    head = row((name, "train"), (cut(f"  {many}{order}, over {_OVER[axis]}", max(0, width - width_of(name))), "dim"))
    legend = _legend(group, runs, metric, width)[: max(1, height - 1 - _LEAST_CHART)]
    left = height - 1 - len(legend)
    if left < _LEAST_CHART:
        return [head, *legend]
    curves = draw_overlay(overlay(runs, axis, metric), ChartView(), width, left)
    return [head, *legend, *(curves or [EMPTY, row(("   the curves are being read …", "dim"))])]


def _legend(group: Group, runs: Sequence[RunSnapshot], metric: str, width: int) -> list[Row]:
    """An entry like ``1 lr=0.2 wd=0.01  1.389`` for each run, in as many columns as fit."""
    told = []
    for place, run in enumerate(runs):
        judged = best_of(run)
        value = shown.number(judged[1]) if judged is not None and judged[0] == metric else shown.UNKNOWN
        told.append((place, clean(what_differs(run, group)), value))
    widest = min(max(width_of(words) for _, words, _ in told), max(8, width - 14))
    number = max(width_of(value) for _, _, value in told)
    columns = max(1, (width - 1) // (widest + number + 6))
    rows = []
    for first in range(0, len(told), columns):
        spans = [Span(" ")]
        for place, words, value in told[first : first + columns]:
            spans += [Span(f"{LABELS[place]} ", f"{RUN_ROLES[place]} strong"), Span(fit(words, widest))]
            spans.append(Span(f"  {fit(value, number, 'right')}   ", "dim"))
        rows.append(row(*spans))
    return rows
