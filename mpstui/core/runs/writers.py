"""Finds the processes on this machine that write the files of a foreign run: the only proof that it is alive.

A process counts as a writer if it has a file open for writing, or if its pid is in the file's name (TensorBoard) or in
the file itself (many heartbeats). Finding no writer proves nothing, since many programs open their file anew for each
line; the end of a writer that was seen does prove something.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ...wire.liveness import ProcessIdentity
from .local_machine import LocalMachine
from .sightings import Sighting

LOOK_SECONDS = 5.0
"""How often to look for the writer of growing files."""
_NAMED = re.compile(r"\.tfevents\.\d{10}\.(?P<host>.+?)\.(?P<pid>\d+)\.")


class Writers:
    """The processes that were seen to write the files of a run."""

    def __init__(self, machine: LocalMachine) -> None:
        self._machine = machine
        self._known: tuple[ProcessIdentity, ...] = ()
        self._gone: tuple[ProcessIdentity, ...] = ()
        self._gone_at = 0.0
        self._changed_at: float | None = None
        self._kept: tuple[tuple[Path, ...], Sighting | None] = ((), None)
        """For which files a sighting was last read from or saved in the home, and that sighting."""
        self._look_at = 0.0

    @property
    def gone(self) -> str:
        """The pids of the writers, if all of them have ended; else empty."""
        return ", ".join(str(one.pid) for one in self._gone)

    def look(self, files: Sequence[Path], changed_at: float | None, pid: int | None = None) -> bool | None:
        """True if a writer is alive, False if all have ended; None if none was seen, or an unseen one continues.

        Args:
            changed_at: when the files were last written to.
            pid: the pid of the writer according to the files themselves.
        """
        machine, first, grown = self._machine, self._changed_at is None, changed_at != self._changed_at
        if first and changed_at is not None:
            self._remember(files, changed_at)
        if any(map(machine.process, self._known)):
            self._changed_at = changed_at
            self._keep(files)
            return True
        if self._known or (changed_at is not None and grown and machine.monotonic() >= self._look_at):
            self._look_at, self._changed_at = machine.monotonic() + LOOK_SECONDS, changed_at
            pids = {*machine.open_files.writers(files, anew=bool(self._known))}
            if grown and not first:  # if the file does not grow, the pid may be another process's by now
                pids.update(_named(files), () if pid is None else (pid,))
            found = tuple(row.identity for pid in sorted(pids) if (row := machine.table.find(pid)) and row.alive)
            if self._known and not found:
                self._gone, self._gone_at = self._known, machine.clock()
            self._known = found
            if found or (changed_at or 0.0) > self._gone_at:
                self._gone = ()
            self._keep(files)
        return True if self._known else False if self._gone else None

    def _remember(self, files: Sequence[Path], changed_at: float) -> None:
        """Start from what others have seen, unless the files were written after those writers had ended."""
        kept = self._machine.sightings
        seen = kept.find(files) if kept is not None else None
        if seen is None or not self._machine.boot_id or (seen.ended is not None and changed_at > seen.ended):
            return
        self._kept = (*files,), seen
        if seen.ended is None and seen.boot == self._machine.boot_id:
            self._known = seen.writers
        else:
            self._gone, self._gone_at = seen.writers, self._machine.clock() if seen.ended is None else seen.ended

    def _keep(self, files: Sequence[Path]) -> None:
        """Save the sighting for the next process."""
        who, ended = self._known or self._gone, None if self._known else self._gone_at
        seen = Sighting(who, self._machine.boot_id, ended) if who else None
        if self._machine.sightings is not None and (seen is not None or self._kept[1] is not None):
            if ((*files,), seen) != self._kept:
                self._machine.sightings.keep(files, seen)
            self._kept = (*files,), seen


def _named(files: Sequence[Path]) -> Iterator[int]:
    """Yield the pid in the newest of these file names, if it is from this machine."""
    told = [found for path in files if (found := _NAMED.search(path.name)) is not None]
    newest = max(told, key=lambda found: found[0], default=None)
    if newest is not None and newest["host"] == _host():
        yield int(newest["pid"])


@cache
def _host() -> str:
    return socket.gethostname()
