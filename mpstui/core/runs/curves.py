"""The curves of one run, joined from those who tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..model.snapshot import SeriesView

OPTIMIZER_AXIS, PRINTED_AXIS = "optimizer step", "printed step"
"""Two counts of one training may differ: micro-batches are printed, say, and the agent sees what the optimizer does."""
FEW_POINTS, MANY_TIMES = 60, 8
"""A printed loss of so few points leaves the chart to one that was seen so many times as often."""


class JoinedCurves:
    """The curves of all witnesses of one run."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], tuple[SeriesView, SeriesView]] = {}

    def of(self, told: Sequence[tuple[str, Mapping[str, SeriesView]]], lead: str | None) -> dict[str, SeriesView]:
        """All curves; of what several tell, that of the lead, else of the first. The same objects while nothing is new.

        Args:
            told: curves by witness; the first counts steps in its way, the others count as the program does.
            lead: the witness whose loss is shown; while it has told few, the first one's curve stands for it.
        """
        own, losses = told[0][0], {witness: views["loss"].count for witness, views in told if "loss" in views}
        printed, seen = losses.get(lead or "", 0), losses.get(own, 0)
        first = own if 0 < printed < FEW_POINTS and seen > MANY_TIMES * printed else lead
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
                shown = view
                if view.axis == "step" and (witness == own) != (order[0][0] == own):
                    of, shown = self._made.get((witness, name), (None, view))
                    if of is not view:
                        shown = replace(view, axis=OPTIMIZER_AXIS if witness == own else PRINTED_AXIS)
                        self._made[witness, name] = view, shown
                found.setdefault(f"loss ({witness})" if name == "loss" and name in found else name, shown)
        return found


def respelt(name: str) -> str:
    """One spelling for ``D loss`` that a program prints and ``d_loss`` that its variable is called."""
    return " ".join(name.replace("_", " ").lower().split())
