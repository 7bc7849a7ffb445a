"""Whether a run that mpstui did not start still trains: by the process that writes its files, else by their growth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .follower import RunFollower
from .local_machine import LocalMachine
from .signs import Condition, duration
from .writers import Writers

SILENT_SECONDS, SILENT_PAUSES, SILENT_LONGEST = 15.0, 3.0, 2.0
"""Files are silent once nothing came for so long, so many usual pauses, and so many of the longest one."""
LONGEST_SECONDS = 300.0
"""A longer pause than this was none of its own: the run was resumed."""


class ForeignReader(RunFollower):
    """The rules by which the state of a foreign run is told, whatever its files are."""

    def __init__(self, machine: LocalMachine, columns: int | None = None) -> None:
        super().__init__(machine, columns)
        self._writers = Writers(machine)
        self.writes: bool | None = None
        """Whether a process that writes its files lives; None: nobody was seen to."""

    def _sees_writer(self) -> bool | None:
        """Look whether one lives."""
        return self._writers.look(self._written_files(), max(self._written(), default=None))

    def _written_files(self) -> Sequence[Path]:
        return self.external.file.paths() if self.external is not None else ()

    def _foreign_condition(self, *, ended: bool) -> Condition:
        """What it is doing. Files that nobody has seen to grow may be a copy: it looks as new as a live file."""
        condition = self._condition()
        self.writes = None if ended else self._sees_writer()
        if ended or self.heartbeats.file is not None:
            return Condition(None) if ended else condition
        if self.writes is False:
            return Condition(None, f"process {self._writers.gone}, which wrote it, has ended")
        if self.writes or self._moved is None:
            return condition
        if not self._pauses:
            return Condition(None)
        silent = self.machine.clock() - self._moved
        usual, longest = self._usual_pause() or 0.0, min(LONGEST_SECONDS, max(self._pauses))
        if silent > max(SILENT_SECONDS, SILENT_PAUSES * usual, SILENT_LONGEST * longest):
            return Condition(None, f"nothing written for {duration(silent)}")
        return condition
