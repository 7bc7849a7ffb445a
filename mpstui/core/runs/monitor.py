"""The headless monitor: all runs of a home, refreshed at a cost that depends only on what has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from ...wire import liveness
from ...wire.liveness import ProcessTable
from ...wire.records import QueueRule
from ...wire.rundir import RunDir, run_dirs
from ..follow import Budget
from ..model.home import Home
from ..model.snapshot import Availability, RunSnapshot, State
from .find import find_run
from .local_machine import LocalMachine
from .recalled import RecalledRun
from .sightings import sightings_in
from .summaries import Summaries
from .watching import Watching

if TYPE_CHECKING:
    from .follower import RunFollower
    from .reader import RunReader

REFRESH_SECONDS = 0.05
"""How long one refresh may read backlogs, not counting the checks for changes."""
GLANCE_SECONDS = 0.005
"""How much of that goes to a run whose numbers were never read: enough for the end of its log."""
NO_TIME = Budget(0.0)
BEST_SECONDS = 0.03
"""How long one refresh may read long runs in stores, for the best values shown in a list."""
KEPT_AT_ONCE = 8
"""How many summaries are written even if no time is left, so that a short-lived process also leaves some."""
SETTLED_SECONDS = 1.0
"""How often an ended run is checked: somebody may restart it from elsewhere."""
FEW_SECONDS, MOST_LOOKS_A_SECOND = 0.1, 250
"""Each refresh checks all live runs; if that meant more checks per second than this, they take turns."""
FOCUS_SECONDS = 0.02
"""How long one refresh may read the history of the focused run; to read more, see :meth:`Monitor.read_on`."""
SNAPSHOT_SECONDS = 30.0
"""Processor time allowed for a snapshot requested by name to read the whole history."""
HELD_HISTORIES = 3
"""How many runs keep their whole history in memory after the focus has moved on."""
COMPARED_BUCKETS = 1 << 18
"""Buckets for the curves of all compared runs, about 140 bytes each: twenty runs stay below 40 MB."""
AVAILABLE_SECONDS = 5.0
"""How long the available actions of an unchanged run stay valid: the disk may fill up meanwhile."""
AvailabilityRule = Callable[[RunSnapshot], Mapping[str, Availability]]


class Monitor:
    """All runs under ``home``, and those added by :meth:`watch`. Not thread-safe: one thread owns it."""

    def __init__(
        self,
        home: Home,
        *,
        clock: Callable[[], float] = time.time,
        table: ProcessTable | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        boot_id: str | None = None,
        availability: AvailabilityRule | None = None,
        kept: Summaries | None = None,
        columns: int | None = None,
    ) -> None:
        """Create a monitor of ``home`` on this machine; tests may pass another clock or process table.

        Args:
            kept: summaries of ended runs from earlier processes; those read by this one are added.
            availability: tells which actions are possible; it fills ``available`` of the focused runs.
            columns: the most points per curve in a full snapshot; None for as many as a screen needs.
        """
        self.home = home
        self._folder = home.runs
        self._machine = LocalMachine(
            table=table or liveness.system_process_table(),
            boot_id=liveness.boot_id() if boot_id is None else boot_id,
            clock=clock,
            monotonic=monotonic,
            sightings=sightings_in(home.state),
        )
        self._runs: dict[str, RunReader] = {}
        self._recalled: dict[str, RecalledRun] = {}
        """Runs that need no reading: an earlier process has read them, and they have not changed."""
        self.watched = Watching(self._machine, columns, home.state)
        self._recently_read: list[str] = []
        """Keys of the runs whose whole histories are in memory, the most recent last."""
        self._schedule = PollSchedule(monotonic)
        self._turns = PollSchedule(monotonic)
        """For live runs. Hints do not hurry it: otherwise two hundred active runs would all be read all the time."""
        self._kept, self._all_recalled = kept, False
        self._availability = availability
        self._columns = columns
        self._available: dict[str, tuple[object, float, Mapping[str, Availability]]] = {}

    def refresh(
        self, focus: str | None = None, selected: Collection[str] = (), compared: Sequence[str] = ()
    ) -> tuple[RunSnapshot, ...]:
        """Return a snapshot of every run, newest first, preceded by the watched ones.

        Only the run ``focus`` and the compared ones come with all curves, checkpoints and events, the others with a
        short loss curve. For a settled run, the same object is returned each time. Long files are read in slices over
        several refreshes, their newest part first.

        Args:
            selected: further runs whose available actions are needed.
            compared: runs whose full curves are needed; their memory does not grow with the number of runs.
        """
        self._find_runs()
        closely = [*([focus] if focus is not None and not (selected and self._waits(focus)) else []), *compared]
        self._turn_to(closely, COMPARED_BUCKETS // len(compared) if compared else None)
        clock = self._machine.monotonic
        reading = Budget(FOCUS_SECONDS, clock)  # shared by all runs that are read in full
        for reader in filter(None, map(self.reader, closely)):
            reader.refresh(full=True, budget=reading)
        budget = self._refresh_others(closely)
        if self.watched.grows:
            self.watched.look(self._runs.values())
        newest = self._newest()
        snapshots = self._placed(list(newest.values()))
        self._remember(budget)
        if self._kept is not None and self.watched:
            self.watched.read_best(Budget(BEST_SECONDS, clock))
        wanted = {focus, *selected}
        self._available = {key: held for key, held in self._available.items() if key in wanted}
        return tuple(
            self._with_available(key, snapshot) if key in wanted else snapshot
            for key, snapshot in zip(newest, snapshots, strict=True)
        )

    def _refresh_others(self, closely: Collection[str]) -> Budget:
        """Check the other runs that are due, then read on in those that are behind; return the remaining budget."""
        others = [(key, reader) for key, reader in self._by_need() if key not in closely]
        turn = min(sum(not reader.settled for _, reader in others) / MOST_LOOKS_A_SECOND, SETTLED_SECONDS)
        for key, reader in others:
            schedule, seconds = (self._schedule, SETTLED_SECONDS) if reader.settled else (self._turns, turn)
            if seconds < FEW_SECONDS or schedule.due(key, seconds):
                reader.refresh(full=False, budget=NO_TIME)
        clock = self._machine.monotonic
        budget = Budget(REFRESH_SECONDS, clock)  # first for the newest numbers of all, then histories, shortest first
        behind = [reader for _, reader in others if not reader.caught_up]
        for reader in sorted(behind, key=lambda one: (not one.unread, one.list_pending_bytes)):
            if not budget.spent:
                reader.refresh(full=False, budget=Budget(GLANCE_SECONDS, clock) if reader.unread else budget)
        return budget

    def _newest(self) -> dict[str, RunSnapshot]:
        """Return the newest snapshot of each run: first the watched ones, then those of the home, newest first."""
        ours: dict[str, RunSnapshot | None] = {key: known.snapshot for key, known in self._recalled.items()}
        ours |= {key: reader.snapshot for key, reader in self._runs.items()}
        seen = {**{key: one.snapshot for key, one in self.watched.items()}, **dict(sorted(ours.items(), reverse=True))}
        return {key: snapshot for key, snapshot in seen.items() if snapshot is not None}

    def _find_runs(self) -> None:
        """Find out which runs exist, and which recalled ones have changed."""
        for key, known in list(self._recalled.items()):
            if self._schedule.due(key, SETTLED_SECONDS) and not known.holds():
                del self._recalled[key]  # found again below, to be read
        found, known_runs = {run.run: run for run in run_dirs(self._folder)}, self._runs.keys() | self._recalled.keys()
        for name in known_runs - found.keys():
            self._runs.pop(name, None)
            self._recalled.pop(name, None)
            self._schedule.forget(name)
            self._turns.forget(name)
        for name in found.keys() - known_runs:
            kept = self._kept.find(found[name], self._machine.clock()) if self._kept is not None else None
            if kept is not None:
                self._recalled[name] = RecalledRun(found[name], *kept)
            else:
                self._runs[name] = self._open(found[name])

    def _open(self, run: RunDir) -> RunReader:
        from .reader import RunReader  # spares the first frame of a list of ended runs 18 ms

        return RunReader(run, self._machine, columns=self._columns)

    def _waits(self, key: str) -> bool:
        """True if a run selected in the list, and never read in full, must wait for others that are still unread."""
        known = self._recalled.get(key) or self.reader(key)
        seen = known.snapshot if known is not None else None
        return (seen is None or seen.brief) and any(one.snapshot is None or one.unread for one in self._runs.values())

    def _remember(self, budget: Budget) -> None:
        """Save summaries of ended runs, as far as time allows."""
        if self._kept is not None:
            if not self._all_recalled:
                self._all_recalled = True
                self._kept.forget(self._runs.keys() | self._recalled.keys())
            left = 0 if budget.spent else len(self._runs)
            for reader in self._runs.values():
                left -= reader.remember(self._kept)
                if left <= -KEPT_AT_ONCE:
                    return

    @property
    def is_behind(self) -> bool:
        """True if some ended runs have not been read through yet."""
        lacks = bool(self.watched) and self.watched.lacks_best
        return lacks or any(reader.settled and not reader.caught_up for reader in self._runs.values())

    def read_on(self, focus: str, seconds: float) -> int:
        """Continue reading the history of the focused run without making a snapshot; may be called at any time.

        Args:
            seconds: how long to read; 0 reads nothing.

        Returns:
            The number of bytes still unread.
        """
        reader = self.reader(focus) if focus not in self._recalled else None
        if reader is None:
            return 0
        if seconds > 0 and reader.pending_bytes:
            reader.read_on(Budget(seconds))
        return reader.pending_bytes

    def snapshot(self, run: str) -> RunSnapshot:
        """Return one run in full, its history read to the end.

        Args:
            run: an id, an unambiguous part of one, a name, or a key returned by :meth:`watch`.

        Raises:
            UsageError: no run matches, or several do.
        """
        reader = self.watched.get(run)
        if reader is None:
            found = find_run(self.home, run)
            reader = self.reader(found.run) or self._runs.setdefault(found.run, self._open(found))
        return reader.refresh(full=True, budget=Budget(SNAPSHOT_SECONDS, time.thread_time))

    def watch(self, path: Path) -> str:
        """Add a file, folder, job or store that mpstui did not start; return its key, empty unless it is one run."""
        keys = self.watch_all(path)
        return keys[0] if len(keys) == 1 else ""

    def watch_all(self, path: Path) -> list[str]:
        """Like :meth:`watch`, but return the keys of all runs found there now."""
        return list(self.watched.watch(path))

    def refresh_whole(self, seconds: float = 2.0) -> tuple[RunSnapshot, ...]:
        """Refresh until nothing is left to read, for a command that looks once; return every run with its numbers.

        Args:
            seconds: the most processor time to spend (not wall time, so that a busy machine gives the same answer).
        """
        budget = Budget(seconds, time.thread_time)
        snapshots = self.refresh()
        while not budget.spent and any(not reader.caught_up for _, reader in self._by_need()):
            snapshots = self.refresh()
        return snapshots

    def hint(self, runs: Iterable[str]) -> None:
        """Make the next refresh check these runs, even settled ones, because something may have happened to them."""
        self._schedule.hurry(runs)

    def _placed(self, snapshots: list[RunSnapshot]) -> tuple[RunSnapshot, ...]:
        """Give queued runs their place in the queue, which depends on all queued runs."""
        queued = [one.run for one in snapshots if one.state is State.QUEUED and not one.job and one.run in self._runs]
        if not queued:
            return tuple(snapshots)
        from .expecting import with_expectations
        from .queueing import Waiter, places

        waiters = []
        for run, seen in ((run, self._runs[run].witnesses.seen) for run in queued):
            rule = seen.spec.queue if seen.spec else QueueRule()
            waiters.append(Waiter(run, rule, seen.status.waiting_for if seen.status else None))
        groups = {run: one.queue_group for run, one in self._runs.items()}
        found = places(self.home, waiters, {item.run: item.name for item in snapshots})
        found = with_expectations(found, snapshots, groups)
        return tuple(replace(item, queue=found[item.run]) if item.run in found else item for item in snapshots)

    def _with_available(self, key: str, snapshot: RunSnapshot) -> RunSnapshot:
        """Add the available actions, redetermined when what decides them has changed, or after a while."""
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

    def reader(self, key: str | None) -> RunFollower | None:
        """Return the reader for a key; None if there is none."""
        if key is None:
            return None
        if (known := self._recalled.pop(key, None)) is not None:
            self._runs[key] = self._open(known.run)
            self._runs[key].recall(known)
        return self.watched.get(key) or self._runs.get(key)

    def _by_need(self) -> list[tuple[str, RunFollower]]:
        """Return active runs first, then newest first, so that a budget spent early leaves out what matters least."""
        runs = sorted(self._runs.items(), reverse=True)
        runs.sort(key=lambda item: item[1].settled)
        return [*self.watched.items(), *runs]

    def _turn_to(self, closely: list[str], buckets: int | None) -> None:
        """Keep the histories of the most recently viewed runs; free the others."""
        if not closely or self._recently_read[-len(closely) :] == closely:
            return
        held = max(HELD_HISTORIES, len(closely))
        self._recently_read = [*(key for key in self._recently_read if key not in closely), *closely]
        for reader in map(self.reader, self._recently_read[:-held]):
            if reader is not None:
                reader.rest()
        self._recently_read = self._recently_read[-held:]
        for reader in map(self.reader, closely):
            if reader is not None:
                reader.allot(buckets)


class PollSchedule:
    """Decides when each key is checked next.

    With hundreds of ended runs, checking every file each time would be the monitor's entire idle load.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._next: dict[str, float] = {}

    def due(self, key: str, every_seconds: float) -> bool:
        """True if ``key`` is to be checked now; it is next due after ``every_seconds``.

        After the first check, the interval is shortened by a part that depends on the key, so that many keys do not
        keep coming due together.
        """
        now = self._monotonic()
        if key not in self._next:
            fraction = crc32(key.encode(errors="surrogatepass")) % 1000 / 1000
            self._next[key] = now + every_seconds * (0.5 + 0.5 * fraction)
            return True
        if now < self._next[key]:
            return False
        self._next[key] = now + every_seconds
        return True

    def hurry(self, keys: Iterable[str]) -> None:
        """Make these keys due at once."""
        for key in keys:
            if key in self._next:
                self._next[key] = 0.0

    def forget(self, key: str) -> None:
        """Drop a key."""
        self._next.pop(key, None)
