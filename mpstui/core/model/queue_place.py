"""A queued run's place in its queue."""

from __future__ import annotations

from typing import NamedTuple


class QueuePlace(NamedTuple):
    """A queued run's place, and what it is waiting for."""

    group: str | None = None
    """The queue's name; None: it waits only for other runs."""
    number: int | None = None
    """Its place among the waiting runs of the group, 1 being next; None until it has joined the queue."""
    paused: bool = False
    """True while no run of the group may start."""
    after: tuple[str, ...] = ()
    """Names of the runs that must end first."""
    behind: tuple[str, ...] = ()
    """Names of the group's runs that are running or will start before it."""
    starts_in: float | None = None
    """Approximate seconds until its turn; None: unknown."""

    def sentence(self) -> str:
        """Return ``2nd in default``, ``after stage1``, ``1st in default (paused)``."""
        if self.after:
            parts = [f"after {', '.join(self.after)}"]
        elif self.group is not None:
            parts = [f"{ordinal(self.number)} in {self.group}" if self.number else f"in {self.group}"]
        else:
            parts = []
        return f"{' · '.join(parts)} (paused)".lstrip() if self.paused else " · ".join(parts)


def ordinal(number: int) -> str:
    """Format as ``1st``, ``2nd``, ``3rd``, ``4th``, ``11th``, ``21st``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
