"""What a verdict on a run depends on beside its files; a list of ended runs needs this of their readers alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...wire.liveness import Process, ProcessIdentity, ProcessTable

TABLE_SECONDS = 2.0
"""How long a look at the process table serves: on macOS each one starts ``ps``."""
MANY_PROCESSES = 4


@dataclass
class LocalMachine:
    """This machine, as far as a verdict depends on it: clocks, boot id and process table are handed in."""

    table: ProcessTable
    boot_id: str
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    heeds_moves: bool = True
    """Whoever moves a run sees it as it would be if nobody did."""
    _states: dict[int, tuple[float, Process | None]] = field(default_factory=dict)

    def process(self, identity: ProcessIdentity) -> Process | None:
        """That very process if it lives, at most ``TABLE_SECONDS`` ago."""
        now = self.monotonic()
        asked, found = self._states.get(identity.pid, (-TABLE_SECONDS, None))
        if now - asked >= TABLE_SECONDS:
            found = self.table.find(identity.pid)
            if len(self._states) > 1000:
                self._states.clear()
            self._states[identity.pid] = (now, found)
        return found if found is not None and found.alive and found.start == identity.start else None

    def forget(self, identity: ProcessIdentity) -> None:
        """What was seen of it holds no longer."""
        self._states.pop(identity.pid, None)

    def alive(self, identities: Iterable[ProcessIdentity]) -> tuple[int, ...]:
        """Pids of those that live now (asked afresh: a verdict hangs on it)."""
        wanted = list(dict.fromkeys(identities))
        if len(wanted) > MANY_PROCESSES:
            rows = self.table.snapshot()
            found = [rows.get(identity.pid) for identity in wanted]
        else:
            found = [self.table.find(identity.pid) for identity in wanted]
        pairs = zip(wanted, found, strict=True)
        return tuple(one.pid for one, row in pairs if row is not None and row.start == one.start and row.alive)
