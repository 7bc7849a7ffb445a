"""What of the machine is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..core.model.snapshot import RunSnapshot


class Wanted(NamedTuple):
    """A run whose machine is looked at, and whether the panel that shows it is in view."""

    snapshot: RunSnapshot
    in_view: bool

    @property
    def subject(self) -> tuple[str, int | None, bool]:
        """What makes a new sample due at once when it changes."""
        return self.snapshot.run, self.snapshot.pid, self.in_view
