"""Which processes of this machine write the files of a run that mpstui did not start: what alone proves that it lives.

A process writes a file if it has it open for that, if it stands in the file's name, as in those of TensorBoard, or in
the file itself, as in many a heartbeat. That nobody does proves nothing, since many programs open their file for each
line; the end of one that was seen does.
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
"""How often to look for the writer of files that grow."""
_NAMED = re.compile(r"\.tfevents\.\d{10}\.(?P<host>.+?)\.(?P<pid>\d+)\.")


class Writers:
    """The processes that were seen to write the files of one run."""

    def __init__(self, machine: LocalMachine) -> None:
        self._machine = machine
        self._known: tuple[ProcessIdentity, ...] = ()
        self._gone: tuple[ProcessIdentity, ...] = ()
        self._gone_at = 0.0
        self._changed_at: float | None = None
        self._kept: tuple[tuple[Path, ...], Sighting | None] = ((), None)
        """What was found or put into the home, of which files."""
        self._look_at = 0.0

    @property
    def gone(self) -> str:
        """The pids of those that have ended, where all of them have."""
        return ", ".join(str(one.pid) for one in self._gone)

    def look(self, files: Sequence[Path], changed_at: float | None, pid: int | None = None) -> bool | None:
        """Whether one of them lives; None: nobody was seen to write, or somebody unseen goes on.

        Args:
            changed_at: when the files were last written to.
            pid: of who wrote them then, as they say.
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
            if grown and not first:  # of a file that does not grow, another process may have the pid by now
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
        """Begin with what others have seen, unless somebody has written since those had ended."""
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
        """Tell whoever looks next."""
        who, ended = self._known or self._gone, None if self._known else self._gone_at
        seen = Sighting(who, self._machine.boot_id, ended) if who else None
        if self._machine.sightings is not None and (seen is not None or self._kept[1] is not None):
            if ((*files,), seen) != self._kept:
                self._machine.sightings.keep(files, seen)
            self._kept = (*files,), seen


def _named(files: Sequence[Path]) -> Iterator[int]:
    """The pid in the newest of these names, where it is one of this machine."""
    told = [found for path in files if (found := _NAMED.search(path.name)) is not None]
    newest = max(told, key=lambda found: found[0], default=None)
    if newest is not None and newest["host"] == _host():
        yield int(newest["pid"])


@cache
def _host() -> str:
    return socket.gethostname()
