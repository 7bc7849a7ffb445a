"""The mark of a run that is being moved: a lock, and beside it a record of how far the move has got."""

from __future__ import annotations

import time
from contextlib import suppress

from ...wire import liveness, storage
from ...wire.moves import Leaving
from ...wire.records import Request
from ...wire.rundir import RunDir
from ..follow import Budget
from ..launching.actions import Actions
from ..model.errors import OperationError
from ..model.snapshot import RunSnapshot
from ..runs.local_machine import LocalMachine
from ..runs.monitor import SNAPSHOT_SECONDS
from ..runs.reader import RunReader

BEGUN_SECONDS = 5.0
"""How long to wait for the start of a run that is to continue."""
_POLL_SECONDS = 0.01


class Mark:
    """Held by whoever moves a run; of several movers, only the first one gets it."""

    def __init__(self, run: RunDir, told: Leaving) -> None:
        """Take the mark.

        Raises:
            OperationError: somebody else moves the run, or its disk takes no record.
        """
        self.run, self._told = run, told
        try:
            lock = liveness.acquire(run.moving_lock)
            if lock is None:
                raise is_moving(run.run)
            self._lock = lock
            try:
                storage.write_json(run.moving, told._asdict(), sync=False)
            except OSError:
                liveness.release(lock)
                raise
        except OSError as error:
            raise OperationError(f"{run.run} is not moved: {run.path}: {error.strerror}") from error

    def tell(self, step: str) -> None:
        """Show everybody how far the move has got."""
        with suppress(OSError):  # on a full disk they see the previous step
            storage.write_json(self.run.moving, self._told._replace(step=step)._asdict(), sync=False)

    def release(self) -> None:
        """Remove the mark: the move is decided, or cancelled."""
        with suppress(OSError):
            self.run.moving.unlink()
        liveness.release(self._lock)


def is_moving(run: str) -> OperationError:
    """The error for a second mover."""
    return OperationError(f"{run} is being moved already", "try again in a moment", field="held")


def unmoved(run: RunDir) -> RunSnapshot:
    """A snapshot of a run as if nobody were moving it, read to its end."""
    machine = LocalMachine(liveness.system_process_table(), liveness.boot_id(), heeds_moves=False)
    return RunReader(run, machine).refresh(full=True, budget=Budget(SNAPSHOT_SECONDS, time.thread_time))


def await_begin(actions: Actions, snapshot: RunSnapshot, asked: Request) -> None:
    """Wait a moment for a run that is to continue: until it starts, it would look stopped to anybody who asks."""
    until = time.monotonic() + BEGUN_SECONDS
    while actions.answer(snapshot.dir, asked.id) is None and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
