"""The headless monitor: every run of a home, refreshed at the price of what changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ...wire import liveness
from ...wire.liveness import ProcessTable
from ...wire.records import QueueRule
from ...wire.rundir import RunDir, run_dirs
from ..follow.file import Budget
from ..follow.watcher import PollSchedule
from ..model.home import Home
from ..model.snapshot import Availability, RunSnapshot, State
from .find import find_run
from .queueing import Waiter, places
from .reader import RunFollower, RunReader
from .watched import WatchedReader
from .witness import LocalMachine

REFRESH_SECONDS = 0.05
"""What one refresh may spend on reading backlogs; looking at what changed comes on top."""
NO_TIME = Budget(0.0)
SETTLED_SECONDS = 1.0
"""How often a run that has ended is looked at: somebody may restart it from elsewhere."""
FOCUS_SECONDS = 0.02
"""What one refresh may spend on the history of the run in focus; see :meth:`Monitor.read_on` for more."""
SNAPSHOT_SECONDS = 30.0
"""A snapshot that was asked for by name is read to its end."""
HELD_HISTORIES = 3
"""Runs whose whole history stays in memory after the focus has gone elsewhere."""

AVAILABLE_SECONDS = 5.0
"""How long it holds what can be done with a run that has not changed: a disk may fill up meanwhile."""
AvailabilityRule = Callable[[RunSnapshot], Mapping[str, Availability]]


class Monitor:
    """All runs under ``home``, and what :meth:`watch` added. Not thread-safe: one thread owns it."""

    def __init__(
        self,
        home: Home,
        *,
        clock: Callable[[], float] = time.time,
        table: ProcessTable | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        boot_id: str | None = None,
        availability: AvailabilityRule | None = None,
    ) -> None:
        """A monitor of ``home`` on this machine, unless a test hands in another clock or process table.

        Args:
            availability: what can be done with a run, for the ``available`` of the runs in focus.
        """
        self.home = home
        self._machine = LocalMachine(
            table=table or liveness.system_process_table(),
            boot_id=liveness.boot_id() if boot_id is None else boot_id,
            clock=clock,
            monotonic=monotonic,
        )
        self._runs: dict[str, RunReader] = {}
        self._watched: dict[str, RunFollower] = {}
        self._looked_at: list[str] = []
        self._schedule = PollSchedule(monotonic)
        self._availability = availability
        self._available: dict[str, tuple[object, float, Mapping[str, Availability]]] = {}

    def refresh(self, focus: str | None = None, selected: Collection[str] = ()) -> tuple[RunSnapshot, ...]:
        """Every run, newest first, the watched ones before them.

        Only the run ``focus`` comes with all curves, checkpoints and events, the others with a short loss curve. A run
        that has settled gives the very same object as before. Long files are read in slices over several refreshes,
        their newest part first.

        Args:
            selected: further runs of which it is to be told what can be done with them.
        """
        budget = Budget(REFRESH_SECONDS)
        found = {run.run: run for run in run_dirs(self.home.runs)}
        for name in self._runs.keys() - found.keys():
            del self._runs[name]
            self._schedule.forget(name)
        for name in found.keys() - self._runs.keys():
            self._runs[name] = RunReader(found[name], self._machine)
        self._turn_to(focus)
        focused = self._reader(focus)
        if focused is not None:
            focused.refresh(full=True, budget=Budget(FOCUS_SECONDS))
        others = [(key, reader) for key, reader in self._by_need() if key != focus]
        for key, reader in others:
            if not reader.settled or self._schedule.due(key, SETTLED_SECONDS):
                reader.refresh(full=False, budget=NO_TIME)
        for _, reader in others:  # what time is left is for those whose numbers are pending
            if not budget.spent and not reader.caught_up:
                reader.refresh(full=False, budget=budget)
        shown = [*self._watched.items(), *sorted(self._runs.items(), reverse=True)]
        snapshots = self._placed([reader.snapshot for _, reader in shown if reader.snapshot is not None])
        wanted = {focus, *selected}
        self._available = {key: held for key, held in self._available.items() if key in wanted}
        keys = [key for key, reader in shown if reader.snapshot is not None]
        return tuple(
            self._with_available(key, snapshot) if key in wanted else snapshot
            for key, snapshot in zip(keys, snapshots, strict=True)
        )

    def read_on(self, focus: str, seconds: float) -> int:
        """Go on with the history of the run in focus, without a snapshot: between two refreshes, as often as one likes.

        Args:
            seconds: 0 reads nothing.

        Returns:
            the bytes that are still to be read here.
        """
        reader = self._reader(focus)
        if reader is None:
            return 0
        if seconds > 0 and reader.pending_bytes:
            reader.read_on(Budget(seconds))
        return reader.pending_bytes

    def snapshot(self, run: str) -> RunSnapshot:
        """One run in full, its history read to the end.

        Args:
            run: an id, a unique beginning of one, a name, or a key that :meth:`watch` gave.

        Raises:
            UsageError: there is no such run, or several.
        """
        reader = self._watched.get(run)
        if reader is None:
            found = find_run(self.home, run)
            reader = self._runs.setdefault(found.run, RunReader(found, self._machine))
        return reader.refresh(full=True, budget=Budget(SNAPSHOT_SECONDS))

    def watch(self, path: Path) -> str:
        """Add a log, a metric file, a heartbeat or a folder that mpstui did not start; returns its key."""
        path = path.expanduser().absolute()
        key = str(path)
        if key not in self._watched:
            ours = (path / "spec.json").is_file()
            self._watched[key] = RunReader(RunDir(path), self._machine) if ours else WatchedReader(path, self._machine)
        return key

    def refresh_whole(self, seconds: float = 2.0) -> tuple[RunSnapshot, ...]:
        """Every run with its numbers, for a command that looks once: refreshes until nothing is left to be read."""
        budget = Budget(seconds)
        snapshots = self.refresh()
        while not budget.spent and any(not reader.caught_up for _, reader in self._by_need()):
            snapshots = self.refresh()
        return snapshots

    def hint(self, runs: Iterable[str]) -> None:
        """Something happened to these: the next refresh looks at them, however settled they are."""
        self._schedule.hurry(runs)

    def _placed(self, snapshots: list[RunSnapshot]) -> tuple[RunSnapshot, ...]:
        """Queued runs with their place in line, which is told from all of them together."""
        waiters = []
        for item in snapshots:
            if item.state is State.QUEUED and item.run in self._runs:
                seen = self._runs[item.run].witnesses.seen
                rule = seen.spec.queue if seen.spec else QueueRule()
                waiters.append(Waiter(item.run, rule, seen.status.waiting_for if seen.status else None))
        if not waiters:
            return tuple(snapshots)
        found = places(self.home, waiters, {item.run: item.name for item in snapshots})
        return tuple(replace(item, queue=found[item.run]) if item.run in found else item for item in snapshots)

    def _with_available(self, key: str, snapshot: RunSnapshot) -> RunSnapshot:
        """The run with what can be done with it: looked up again when what decides it has changed, or after a while."""
        if self._availability is None:
            return snapshot
        now = self._machine.monotonic()
        seen = (snapshot.state, snapshot.attempt, snapshot.is_frozen, snapshot.queue, snapshot.survivors)
        decides = (*seen, snapshot.numbers.beat is not None)
        of, at, available = self._available.get(key, (None, now, {}))
        if of != decides or now - at >= AVAILABLE_SECONDS:
            available = self._availability(snapshot)
            self._available[key] = decides, now, available
        return replace(snapshot, available=available)

    def _reader(self, key: str | None) -> RunFollower | None:
        if key is None:
            return None
        return self._watched.get(key) or self._runs.get(key)

    def _by_need(self) -> list[tuple[str, RunFollower]]:
        """Active runs first, then newest first: a budget that ends early ends on what matters least."""
        runs = sorted(self._runs.items(), reverse=True)
        runs.sort(key=lambda item: item[1].settled)
        return [*self._watched.items(), *runs]

    def _turn_to(self, focus: str | None) -> None:
        """Keep the histories of the runs looked at last, give back the others'."""
        if focus is None or (self._looked_at and self._looked_at[-1] == focus):
            return
        self._looked_at = [key for key in self._looked_at if key != focus] + [focus]
        for key in self._looked_at[:-HELD_HISTORIES]:
            reader = self._reader(key)
            if reader is not None:
                reader.rest()
        self._looked_at = self._looked_at[-HELD_HISTORIES:]
