"""Precede the curves of a branch by those of the run it left: what that run measured up to the branching step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...wire.records import Branch
from ...wire.rundir import RunDir
from ..follow import Budget
from ..model.snapshot import Piece, SeriesView

if TYPE_CHECKING:
    from .reader import RunReader

_SECONDS = 0.05
"""How long each look may spend on reading the other run, until all of it has been read."""


class Lineage:
    """Reads the parent run once; of a parent that is gone, nothing is shown."""

    def __init__(self, branch: Branch, parent: RunReader) -> None:
        self._branch, self._parent = branch, parent
        self._pieces: dict[str, Piece] | None = None
        self._made: dict[str, tuple[SeriesView, SeriesView]] = {}

    def behind(self, curves: Mapping[str, SeriesView]) -> dict[str, SeriesView]:
        """Return the curves, each preceded by the parent's; unchanged curves give the very same objects as before."""
        if self._pieces is None:
            self._read()
        found = {}
        for name, view in curves.items():
            piece = (self._pieces or {}).get(name)
            known = self._made.get(name)
            if piece is None or view.axis != "step":
                found[name] = view
            elif known is not None and known[0] is view:
                found[name] = known[1]
            else:
                found[name] = replace(view, superseded=[piece, *view.superseded])
                self._made[name] = view, found[name]
        return found

    def _read(self) -> None:
        budget = Budget(_SECONDS)
        snapshot = self._parent.refresh(full=True, budget=budget)
        while self._parent.pending_bytes and not budget.spent:
            self._parent.read_on(budget)
        if not self._parent.pending_bytes:
            snapshot = self._parent.refresh(full=True, budget=Budget(_SECONDS))
            cut = {name: _until(view, self._branch.step) for name, view in snapshot.series.items()}
            self._pieces = {name: piece for name, piece in cut.items() if piece is not None}
            self._parent.rest()


def _until(view: SeriesView, step: int) -> Piece | None:
    count = sum(1 for x in view.x if x <= step) if view.axis == "step" else 0
    columns = (view.x[:count], view.low[:count], view.high[:count], view.mean[:count])
    return Piece(*columns) if count else None


def lineage_of(branch: Branch, child: RunReader) -> Lineage:
    """Return the lineage of a run that branched off another one in the same home."""
    from .reader import RunReader

    return Lineage(branch, RunReader(RunDir(child.run.path.parent / branch.run), child.machine))
