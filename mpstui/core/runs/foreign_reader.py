"""Whether a run that mpstui did not start still trains: by the process that writes its files, else by their growth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from ...wire.heartbeat import number
from ..model.snapshot import Health
from ..present import span
from .follower import LIST_COLUMNS, LIST_SERIES, PAUSES, RunFollower
from .local_machine import LocalMachine
from .sightings import Growth
from .signs import Condition
from .writers import Writers

SILENT_SECONDS, SILENT_PAUSES, SILENT_LONGEST = 15.0, 3.0, 2.0
"""Files are silent once nothing came for so long, so many usual pauses, and so many of the longest one."""
LONGEST_SECONDS = 300.0
"""A longer pause than this was none of its own: the run was resumed."""
_UNSEEN_SECONDS = 60.0
"""How long a pause counts at most between two looks, between which it may have written many times."""
_PAUSES_KEPT = 8
KEEP_SECONDS = 10.0
"""How often growth is kept for others."""
_CLOCKS_APART_SECONDS = 5.0
"""A time further in the future was told by a clock that is wrong, and says nothing of now."""


class ForeignReader(RunFollower):
    """The rules by which the state of a foreign run is told, whatever its files are."""

    def __init__(self, machine: LocalMachine, place: Path, columns: int | None = None) -> None:
        """``place``: what was named, the same for whoever looks at this run."""
        super().__init__(machine, columns)
        self._place = place
        self._writers = Writers(machine)
        self.writes: bool | None = None
        """Whether a process that writes its files lives; None: nobody was seen to."""
        self._recalled = False
        self._grew: Growth | None = None
        self._keep_at = -math.inf

    @property
    def _gone(self) -> str:
        """Who wrote its files and has ended."""
        return f"process {self._writers.gone}, which wrote it, has ended"

    def _sees_writer(self) -> bool | None:
        """Look whether one lives; a heartbeat may name it."""
        beat = self.heartbeats.beat
        return self._writers.look(self._written_files(), self._updated(), beat.pid if beat is not None else None)

    def _written_files(self) -> Sequence[Path]:
        return self.external.file.paths() if self.external is not None else ()

    def _foreign_condition(self, *, ended: bool) -> Condition:
        """What it is doing. Files that nobody has seen to grow may be a copy: it looks as new as a live file."""
        if not self._recalled:
            self._recall()
        condition = self._condition()
        self.writes = None if ended else self._sees_writer()
        if ended or self.writes is False:
            return Condition(None, "" if ended else self._gone)
        if self.heartbeats.file is not None:
            is_unseen = self.writes is None and condition.health is Health.HUNG and self.heartbeats.is_overdue
            return Condition(None, condition.note, silent=True) if is_unseen else condition
        if self.writes or self._moved is None:
            return condition
        silent = self.machine.clock() - self._moved
        self._remember(silent)
        if not self._pauses:
            pauses = self._logged_pauses()
            if self._has_just_logged(pauses):
                return condition
            if silent <= (_patience(pauses) if pauses else SILENT_LONGEST * LONGEST_SECONDS):
                return Condition(None)
        elif silent <= max(_patience(self._pauses), SILENT_PAUSES * (self._usual_pause() or 0.0)):
            return condition
        return Condition(None, f"nothing written for {span(silent)}", silent=True)

    # -- how its files grow

    def _recall(self) -> None:
        """Begin with what whoever looked before has seen: it has grown since, or is silent for so long."""
        self._recalled = True
        kept = self.machine.sightings.find_growth(self._place) if self.machine.sightings is not None else None
        moved = max(self._written(), default=None)
        if kept is None or moved is None or moved < kept.moved:
            return
        gap = [min(moved - kept.moved, _UNSEEN_SECONDS)] if moved > kept.moved else []
        self._grew, self._moved, self._pauses = kept, moved, [*kept.pauses] or gap

    def _remember(self, silent: float) -> None:
        """Tell whoever looks next. Of one that is silent already nothing new can be told."""
        now, moved = self.machine.monotonic(), self._moved
        if now < self._keep_at or moved is None or self.machine.sightings is None:
            return
        self._keep_at = now + KEEP_SECONDS
        if silent <= SILENT_LONGEST * LONGEST_SECONDS and (self._grew is None or moved != self._grew.moved):
            self._grew = Growth(moved, tuple(round(one, 2) for one in self._pauses[-_PAUSES_KEPT:]))
            self.machine.sightings.keep_growth(self._place, self._grew)

    def _logged_pauses(self) -> list[float]:
        """The seconds between the newest values, by the times in its files; empty where these tell none."""
        if self.external is None or number(self.external.newest.get("time")) is None:
            return []
        view = self.external.views(LIST_SERIES, most=LIST_COLUMNS).get("loss")
        known = [] if view is None else list(zip(view.times[1:], view.times, view.points[1:], strict=False))[-PAUSES:]
        return [(later - before) / max(1.0, points) for later, before, points in known if later > before]

    def _has_just_logged(self, pauses: Sequence[float]) -> bool:
        """Whether the times in its files, which a copy shares, say that it goes on: a look at them is enough then."""
        newest = number(self.external.newest.get("time")) if self.external is not None else None
        silent = math.inf if newest is None else self.machine.clock() - newest
        longest = SILENT_LONGEST * LONGEST_SECONDS
        return -_CLOCKS_APART_SECONDS <= silent <= min(longest, _patience(pauses))


def _patience(pauses: Sequence[float]) -> float:
    """How many seconds without a word are nothing unusual after these pauses."""
    from statistics import median  # 4 ms that only a run without an end takes

    longest = min(LONGEST_SECONDS, max(pauses, default=0.0))
    return max(SILENT_SECONDS, SILENT_PAUSES * (median(pauses) if pauses else 0.0), SILENT_LONGEST * longest)
