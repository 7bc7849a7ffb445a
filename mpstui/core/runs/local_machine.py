"""What a verdict on a run depends on besides its files. Readers of ended runs in a list need nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...wire.liveness import Process, ProcessIdentity, ProcessTable, boot_id, system_process_table
from .open_files import OpenFiles
from .sightings import Sightings, sightings_in

TABLE_SECONDS = 2.0
"""How long a snapshot of the process table is used: on macOS each one starts ``ps``."""
MANY_PROCESSES = 4


@dataclass
class LocalMachine:
    """This machine, as far as a verdict depends on it: clocks, boot id and process table are parameters."""

    table: ProcessTable
    boot_id: str
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    heeds_moves: bool = True
    """False for code that moves a run, which must see the run as it would be if it were not being moved."""
    open_files: OpenFiles = field(default_factory=OpenFiles)
    sightings: Sightings | None = None
    """Which processes were seen writing foreign runs; None: that is not remembered."""
    _states: dict[int, tuple[float, Process | None]] = field(default_factory=dict)

    def process(self, identity: ProcessIdentity) -> Process | None:
        """Return that very process if it was alive at most ``TABLE_SECONDS`` ago, else None."""
        now = self.monotonic()
        asked, found = self._states.get(identity.pid, (-TABLE_SECONDS, None))
        if now - asked >= TABLE_SECONDS:
            found = self.table.find(identity.pid)
            if len(self._states) > 1000:
                self._states.clear()
            self._states[identity.pid] = (now, found)
        return found if found is not None and found.alive and found.start == identity.start else None

    def forget(self, identity: ProcessIdentity) -> None:
        """Discard what is cached about a process."""
        self._states.pop(identity.pid, None)

    def alive(self, identities: Iterable[ProcessIdentity]) -> tuple[int, ...]:
        """Return the pids of those that are alive now, looked up afresh because a verdict depends on it."""
        wanted = list(dict.fromkeys(identities))
        if len(wanted) > MANY_PROCESSES:
            rows = self.table.snapshot()
            found = [rows.get(identity.pid) for identity in wanted]
        else:
            found = [self.table.find(identity.pid) for identity in wanted]
        pairs = zip(wanted, found, strict=True)
        return tuple(one.pid for one, row in pairs if row is not None and row.start == one.start and row.alive)


def machine_here(state: Path) -> LocalMachine:
    """Return the machine this runs on, with the sightings kept in this ``state`` folder."""
    return LocalMachine(table=system_process_table(), boot_id=boot_id(), sightings=sightings_in(state))
