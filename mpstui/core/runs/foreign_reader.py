"""Decide whether a run that mpstui did not start still trains: by the process that writes its files, else by growth."""

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
"""Files are silent once nothing was written for this many seconds, this many usual pauses and this many longest ones.
"""
LONGEST_SECONDS = 300.0
"""A longer pause is not the program's own: the run was resumed."""
_UNSEEN_SECONDS = 60.0
"""A pause seen only as growth since an earlier process looked counts as at most this: there may have been many writes.
"""
_PAUSES_KEPT = 8
KEEP_SECONDS = 10.0
"""How often growth is saved for other processes."""
_CLOCKS_APART_SECONDS = 5.0
"""A time further than this in the future comes from a wrong clock and says nothing about the present."""


class ForeignReader(RunFollower):
    """The rules that decide the state of a foreign run, whatever its files are."""

    def __init__(self, machine: LocalMachine, place: Path, columns: int | None = None) -> None:
        """``place``: the path that was named; it identifies the run for every process that looks at it."""
        super().__init__(machine, columns)
        self._place = place
        self._writers = Writers(machine)
        self.writes: bool | None = None
        """Whether a process that writes its files is alive; None: no writer has been seen."""
        self._recalled = False
        self._grew: Growth | None = None
        self._keep_at = -math.inf

    @property
    def _gone(self) -> str:
        """Says which process wrote its files and has ended."""
        return f"process {self._writers.gone}, which wrote it, has ended"

    def _sees_writer(self) -> bool | None:
        """Return whether a writer is alive, as of :attr:`writes`; a heartbeat may name it."""
        beat = self.heartbeats.beat
        return self._writers.look(self._written_files(), self._updated(), beat.pid if beat is not None else None)

    def _written_files(self) -> Sequence[Path]:
        return self.external.file.paths() if self.external is not None else ()

    def _foreign_condition(self, *, ended: bool) -> Condition:
        """Return how the run is doing. Files that nobody has seen grow may be a copy, which looks just as new."""
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
        """Begin with the growth that an earlier process saw: since then the files have grown, or have been silent."""
        self._recalled = True
        kept = self.machine.sightings.find_growth(self._place) if self.machine.sightings is not None else None
        moved = max(self._written(), default=None)
        if kept is None or moved is None or moved < kept.moved:
            return
        gap = [min(moved - kept.moved, _UNSEEN_SECONDS)] if moved > kept.moved else []
        self._grew, self._moved, self._pauses = kept, moved, [*kept.pauses] or gap

    def _remember(self, silent: float) -> None:
        """Save the growth for the next process that looks. A run that is already silent has none to add."""
        now, moved = self.machine.monotonic(), self._moved
        if now < self._keep_at or moved is None or self.machine.sightings is None:
            return
        self._keep_at = now + KEEP_SECONDS
        if silent <= SILENT_LONGEST * LONGEST_SECONDS and (self._grew is None or moved != self._grew.moved):
            self._grew = Growth(moved, tuple(round(one, 2) for one in self._pauses[-_PAUSES_KEPT:]))
            self.machine.sightings.keep_growth(self._place, self._grew)

    def _logged_pauses(self) -> list[float]:
        """Return the seconds between the newest values, by the times in its files; empty if they contain none."""
        if self.external is None or number(self.external.newest.get("time")) is None:
            return []
        view = self.external.views(LIST_SERIES, most=LIST_COLUMNS).get("loss")
        known = [] if view is None else list(zip(view.times[1:], view.times, view.points[1:], strict=False))[-PAUSES:]
        return [(later - before) / max(1.0, points) for later, before, points in known if later > before]

    def _has_just_logged(self, pauses: Sequence[float]) -> bool:
        """True if the times in its files, which a copy has too, say that it goes on; then nobody need see them grow."""
        newest = number(self.external.newest.get("time")) if self.external is not None else None
        silent = math.inf if newest is None else self.machine.clock() - newest
        longest = SILENT_LONGEST * LONGEST_SECONDS
        return -_CLOCKS_APART_SECONDS <= silent <= min(longest, _patience(pauses))


def _patience(pauses: Sequence[float]) -> float:
    """Return how many seconds of silence are not unusual after these pauses."""
    from statistics import median  # imported late: takes 4 ms, and only runs without a recorded end need it

    longest = min(LONGEST_SECONDS, max(pauses, default=0.0))
    return max(SILENT_SECONDS, SILENT_PAUSES * (median(pauses) if pauses else 0.0), SILENT_LONGEST * longest)
