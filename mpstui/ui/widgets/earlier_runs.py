"""The outcome of a profile's runs: a line for each, and below them their curves over each other. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core import present as shown
from ...core.model.snapshot import State
from ...core.present import badge
from ...core.runs.comparison import told_apart
from ...core.runs.listing import best_in, best_of, brief, moment_of_end
from ..rows import EMPTY, Row, Span, clean, clip, cut, fit, row, width_of
from ..theme import RUN_ROLES

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot

_STATE = 12
_LEAST_CHART = 9
_LISTED_BESIDE_CHART = 10
"""Most runs listed when their curves are shown as well."""


def earlier_runs(
    runs: Sequence[RunSnapshot], profile: str | None, now: float, width: int, height: int, *, margin: int = 3
) -> list[Row]:
    """Return the outcome of a profile's runs, newest first, below a title; nothing if there are none, or no room.

    Each line shows when and how long a run trained, its best value, and the settings in which the runs differ. If lines
    are left, the curves follow, labelled with the numbers before the runs.
    """
    found = [one for one in runs if profile and one.profile == profile and one.state is not State.QUEUED]
    if not found or height < 2:
        return []
    charted = height >= min(len(found), _LISTED_BESIDE_CHART) + 2 + _LEAST_CHART
    listed = found[: _LISTED_BESIDE_CHART if charted else height - 1]
    curves = _curves(listed, width - margin, height - len(listed) - 2) if charted else []
    labels = list(_labels(listed) if curves else [""] * len(listed))
    lines = [row((f"{' ' * margin}earlier runs  {len(found)}", "heading"))]
    lines += _lines(listed, labels, now, width, margin)
    return [*lines, EMPTY, *(row(" " * margin, *line.spans) for line in curves)] if curves else lines


def _labels(runs: Sequence[RunSnapshot]) -> list[str]:
    from .overlay import LABELS

    return list(LABELS[: len(runs)])


def _lines(runs: Sequence[RunSnapshot], labels: Sequence[str], now: float, width: int, margin: int) -> list[Row]:
    apart, told = told_apart(runs), []
    for one in runs:
        end, best, loss = moment_of_end(one), best_of(one), one.numbers.loss
        seconds = one.lasted(end)
        known = None if best is None and loss is None else best or ("loss", loss)
        told.append(
            (
                "" if end is None else f"{brief(max(0.0, now - end))} ago",
                "" if seconds is None else shown.duration(seconds),
                "" if known is None else f"{clean(known[0], 14)} {shown.number(known[1])}",
            )
        )
    cells = [max(map(width_of, texts)) + 2 for texts in zip(*told, strict=True)]
    lines = []
    for place, (one, (ago, took, worth)) in enumerate(zip(runs, told, strict=True)):
        look = badge(one)
        parts = (
            Span(" " * margin),
            Span(f"{labels[place]} " if labels[place] else "", f"{RUN_ROLES[place % len(RUN_ROLES)]} strong"),
            Span(fit(f"{look.glyph} {look.word}", _STATE), look.tone),
            Span(fit(ago, cells[0]) + fit(took, cells[1]), "dim"),
            Span(fit(worth, cells[2])),
        )
        name = cut(clean(apart.get(one.run) or one.name), max(8, width - row(*parts).width - 1))
        lines.append(row(*clip((*parts, Span(name, "dim")), width)))
    return lines


def _curves(runs: Sequence[RunSnapshot], width: int, height: int) -> list[Row]:
    """The metric by which most of them are judged, or else their losses; as far as read."""
    from ..charting.plot import ChartView
    from .overlay import best_axis, draw_overlay, overlay

    judged = best_in(runs)
    for metric in dict.fromkeys((judged[1] if judged is not None else "loss", "loss")):
        axis = best_axis(runs, metric)
        drawn = draw_overlay(overlay(runs, axis, metric), ChartView(), width, height - 1)
        if drawn:
            return [row((clean(metric, 40), "train"), (f"  over {axis}", "dim")), *drawn]
    return []
