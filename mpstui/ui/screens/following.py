"""The base of screens that open over a run's own screen and show more of that run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..workers.runs import Focus
from .acting import ActingScreen

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ..context import Context


class FollowingScreen(ActingScreen):
    """Follows its run until it is closed or the run is gone."""

    AUTO_FOCUS = ""

    def __init__(self, context: Context, snapshot: RunSnapshot) -> None:
        super().__init__(context, snapshot.run)
        self.snapshot = snapshot

    def draw(self) -> None:
        """Show the newest snapshot."""
        raise NotImplementedError

    @property
    def acting_on(self) -> RunSnapshot | None:
        return self.snapshot

    @property
    def reading(self) -> Focus:
        """The run in full, without its log and machine."""
        return Focus(self.place)

    def show_runs(self, snapshots: Sequence[RunSnapshot]) -> None:
        found = next((item for item in snapshots if item.run == self.place), None)
        if found is None:
            self.app.pop_screen()
        elif not found.brief:
            self.snapshot = found
            self.draw()
