"""Runs seen through their witnesses alone, to act on a run or wait for its end without reading its output."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

from ...wire import labels, liveness, storage
from ...wire.liveness import boot_id, system_process_table
from ...wire.rundir import RunDir
from ...wire.storage import UnreadableRecord
from ..model.exits import ExitSummary
from ..model.snapshot import Health, RunSnapshot, State
from .files import WitnessReader
from .local_machine import LocalMachine
from .signs import STOPPED
from .state import exit_summary
from .waiting import restart_is_wished

RESPAWN_SECONDS = 5.0
"""How often to make sure that an awaited run can begin: it may itself wait for another."""


class OneRun:
    """A run whose output is never read.

    So acting on it, or waiting for it, is as fast with a huge log, and works even if the log cannot be read.
    """

    def __init__(self, run: RunDir) -> None:
        self.dir = run
        self._reader = WitnessReader(self.dir, LocalMachine(table=system_process_table(), boot_id=boot_id()))

    def snapshot(self) -> RunSnapshot:
        """Return the current state, attempt and end of the run, without numbers."""
        self._reader.poll()
        seen, verdict = self._reader.seen, self._reader.judge(self._phase())
        live = verdict.state.active
        trainer = self._reader.trainer() if live else None
        end = None
        if seen.exit and not live:
            end = exit_summary(seen.exit)
        return RunSnapshot(
            run=self.dir.run,
            name=labels.name_of(self.dir, seen.spec),
            dir=self.dir.path,
            state=verdict.state,
            seen=time.time(),
            reason=verdict.reason,
            health=Health.PAUSED if trainer is not None and trainer.state == STOPPED else None,
            job=seen.job,
            attempt=self._reader.attempt,
            attempts=self._reader.attempt,
            paused=bool(seen.status and seen.status.paused and live),
            exit=end,
            moving=seen.moving,
            moved_to=seen.moved.to if seen.moved and not live else None,
        )

    def _phase(self) -> str | None:
        """Return the phase in the trainer's own heartbeat; None if there is none, or it cannot be read."""
        try:
            phase = (storage.read_json(self.dir.attempt(self._reader.attempt).heartbeat()) or {}).get("phase")
        except (UnreadableRecord, OSError):
            return None
        return phase if isinstance(phase, str) else None


def has_ended(snapshot: RunSnapshot) -> bool:
    """True if the run needs no more waiting for: it has ended, or could not be stopped and so may never end."""
    return not snapshot.state.active or snapshot.state is State.STOP_FAILED


def how_it_ended(snapshot: RunSnapshot) -> str:
    """Return how an ended run ended: ``finished (exit code 0)``."""
    told = snapshot.exit
    unbegun = told is None or told.unbegun or snapshot.was_cancelled
    return f"{snapshot.end_word} ({snapshot.reason if told is None or unbegun else told.sentence()})"


def exit_as_json(told: ExitSummary | None) -> dict[str, Any] | None:
    """Return how an attempt ended, in the form that every command uses."""
    names = ("code", "signal", "cause", "requested_by", "action")
    return {name: getattr(told, name) for name in names} if told is not None else None


class Awaited:
    """A set of runs to wait for."""

    def __init__(self, runs: Iterable[OneRun], respawn: Callable[[], bool]) -> None:
        """``respawn`` starts a supervisor for each waiting run without one; True if it started any."""
        self.left = {one.dir.run: one for one in runs}
        """The runs that have not ended yet, by id."""
        self._respawn, self._respawned = respawn, -math.inf

    def ended(self) -> list[RunSnapshot]:
        """Return the runs that have ended since the last call, in order of their end."""
        if time.monotonic() - self._respawned >= RESPAWN_SECONDS:
            self._respawn()
            self._respawned = time.monotonic()
        found = [snapshot for one in self.left.values() if self._is_over(one, snapshot := one.snapshot())]
        if any(one.state is not State.FINISHED for one in found) and self._respawn():
            found = []  # one of them may have a supervisor again: the next call will tell
        for snapshot in found:
            del self.left[snapshot.run]
        return sorted(found, key=lambda one: one.exit.ended or math.inf if one.exit else math.inf)

    def _is_over(self, one: OneRun, snapshot: RunSnapshot) -> bool:
        # A living supervisor may not have begun a requested restart yet.
        return has_ended(snapshot) and not (liveness.is_held(one.dir.supervisor_lock) and restart_is_wished(one.dir))
