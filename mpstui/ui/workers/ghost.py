"""The worker that finds the best earlier run like the live one in view, and compares the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..messages import GhostReady
from .worker import Post, Worker

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.ghost import GhostFinder
    from ..services import Services

_LOOK_SECONDS, _SLICE_SECONDS, _REST_SECONDS = 2.0, 0.015, 0.06
"""Seconds between two comparisons; earlier runs are read in slices with pauses, using a fifth of a core."""


class GhostWorker(Worker):
    """Works while a live run is in view."""

    name = "earlier runs"

    def __init__(self, services: Services, post: Post, newest: Callable[[], Sequence[RunSnapshot] | None]) -> None:
        """``newest`` returns the newest snapshots of all runs."""
        super().__init__(post)
        self._services, self._newest = services, newest
        self._finder: GhostFinder | None = None
        self._followed: str | None = None
        self._seen: RunSnapshot | None = None

    def follow(self, run: str | None) -> None:
        """Look for the ghost of this run from now on; None for none."""
        if run != self._followed:
            self._followed = run
            self.wake()

    def _work(self) -> float | None:
        snapshots = self._newest() or ()
        live = next((one for one in snapshots if one.run == self._followed), None)
        if self._followed is None or (live is not None and not live.state.active):
            return None
        if live is None or live.brief or live is self._seen or live.profile is None:
            return _LOOK_SECONDS
        if not any(one.profile == live.profile and not one.state.active for one in snapshots):
            return _LOOK_SECONDS
        self._finder = self._finder or self._services.ghosts()
        found = self._finder.look(live, snapshots, _SLICE_SECONDS)
        if self._finder.pending:
            return _REST_SECONDS
        if found is not None or (self._seen is not None and self._seen.run == live.run):
            self._post(GhostReady(live.run, found))
        self._seen = live
        return _LOOK_SECONDS
