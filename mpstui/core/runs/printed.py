"""What a program prints beside the steps that its own records count: its metrics as further curves and values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..model.snapshot import SeriesView

AXIS = "printed step"
"""The axis of curves whose steps were printed: micro-batches, say, where the records count what the optimizer did."""
_TOLD_BY_RECORDS = frozenset({"loss", "lr"})


class PrintedCurves:
    """Printed curves beside those of the records."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[SeriesView, SeriesView]] = {}

    def beside(self, own: Mapping[str, SeriesView], printed: Mapping[str, SeriesView]) -> dict[str, SeriesView]:
        """All curves; of what both tell, that of the records. The very same objects while nothing was added."""
        further = {name: self._placed(view) for name, view in printed.items() if _is_further(name, own)}
        return {**own, **further}

    def _placed(self, view: SeriesView) -> SeriesView:
        if view.axis != "step":
            return view
        of, made = self._made.get(view.name, (None, view))
        if of is not view:
            made = replace(view, axis=AXIS)
            self._made[view.name] = view, made
        return made


def printed_values(own: Mapping[str, float | None], printed: Mapping[str, float | None]) -> Mapping[str, float | None]:
    """The newest values of all metrics, by the same rule."""
    return {**{name: value for name, value in printed.items() if _is_further(name, own)}, **own}


def _is_further(name: str, own: Mapping[str, object]) -> bool:
    return name not in own and name not in _TOLD_BY_RECORDS
