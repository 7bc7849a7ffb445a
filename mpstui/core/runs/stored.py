"""Runs in the stores of experiment trackers, read in place; the store tells whether they are live or ended."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...wire.heartbeat import number
from ...wire.secrets import masked, masked_words
from ..follow import Budget
from ..formats.stores import StoredRun
from ..formats.told import SYSTEM, RunTold
from ..model.exits import ExitSummary
from ..model.snapshot import RunSnapshot, State
from ..series.direction import better
from ..series.metric_words import is_evaluation
from ..series.series import SeriesStore
from .external import ExternalMetrics
from .follower import LIST_SERIES, RunFollower
from .foreign_reader import ForeignReader
from .journal import Extremes
from .local_machine import LocalMachine
from .planned import asked_totals
from .stored_best import BestValues, KeptBest
from .stored_metrics import metrics_of_run
from .watched import WatchedReader, written_ago

if TYPE_CHECKING:
    from ..formats.files import MetricFile

LIST_BYTES = 4 << 20
"""For a run longer than this, the list shows only the newest values, and the best ones once all of it has been read;
its curves are read when it is opened."""
OLD_SECONDS = 60.0
"""A run that has not grown for this long counts as over for now, whether or not its end was recorded."""
_CLOSING_SECONDS = 5.0
"""Whatever is written within this time after the recorded end still belongs to that end."""
TELL_SECONDS = 2.0
"""How often to ask the store about a run whose folder is read like any other."""


class _InLists:
    """The set of metric names that a list needs: the loss, and evaluation metrics with a known direction."""

    def __contains__(self, name: object) -> bool:
        return name in LIST_SERIES or (isinstance(name, str) and is_evaluation(name) and better(name) is not None)


class StoredReader(ForeignReader):
    """One run of a store, whose files are never written to.

    For a list, a short run is read with only the curves that a list draws or judges by. Of a long one, only the end of
    its files is read; its best values are found in the background. Once the run is viewed in full, all of it is read
    and held until `rest`. A run that was resumed is opened anew.
    """

    def __init__(
        self, stored: StoredRun, machine: LocalMachine, columns: int | None = None, kept: KeptBest | None = None
    ) -> None:
        """``kept``: best values of long runs found by other processes."""
        super().__init__(machine, Path(stored.key), columns)
        self.stored = stored
        self._best = BestValues(stored, machine.clock, _InLists(), kept)
        self._parts = len(stored.parts)
        """How often the run had been started when its curves were opened."""
        self._whole = False
        """True if all of its curves are read and held, not only what a list shows."""
        self._glanced_at: object = None
        """The state of its files when the end of a long run was last read."""
        self._metrics: MetricFile | None = None
        """The reader of its curves, which has also seen what the store keeps among them."""
        self._told = RunTold()
        self._told_at: object = None
        """The state of its files when the store was asked, and how far they had been read."""
        self._settings: Mapping[str, str] = {}
        """Its configuration, secrets masked."""

    @property
    def settled(self) -> bool:
        return self._told.state is not None and self.snapshot is not None and not self._begun_again

    @property
    def caught_up(self) -> bool:
        return self._failed or (self._seen and not self._begun_again and (self._is_long or super().caught_up))

    @property
    def unread(self) -> bool:
        return not (self._is_long and self._seen) and super().unread

    @property
    def list_pending_bytes(self) -> int:
        return 0 if self._is_long and self._seen else super().list_pending_bytes

    @property
    def pending_bytes(self) -> int:
        return sum(file.pending_bytes for file in self._files()) if self._whole else 0

    @property
    def _begun_again(self) -> bool:
        """True if the run was resumed since it was opened."""
        return self._parts != len(self.stored.parts)

    @property
    def _seen(self) -> bool:
        return self.snapshot is not None and not self._outdated

    @property
    def _is_long(self) -> bool:
        """True if the run is too long to be read for a list."""
        return self.external is not None and not self._whole and self.external.file.size > LIST_BYTES

    @property
    def lacks_best(self) -> bool:
        if not (self._seen and self._is_long) or self._failed:
            return False
        return self._best.lack(self._mark(), is_over=self._is_over())

    def read_best(self, budget: Budget) -> None:
        if self._best.read(budget, self._mark(), is_over=self._is_over()):
            self._outdated = True

    def _mark(self) -> object:
        """Return a value that changes when a file grows."""
        file = self.external.file if self.external is not None else None
        return file and (file.changed_at, file.size)

    def _is_over(self) -> bool:
        updated = self._updated()
        is_old = updated is not None and self.machine.clock() - updated > OLD_SECONDS
        return is_old or self._told.state is not None

    def read_on(self, budget: Budget) -> None:
        if self._whole:
            self._outdated = True
            self._read_external(budget, anyway=True)

    def rest(self) -> None:
        """Drop the curves, which can be read again."""
        if self._whole:
            self._whole, self._full, self.external = False, False, None

    def _refreshed(self, full: bool, budget: Budget) -> RunSnapshot:
        if not full and self.snapshot is not None and self._is_quiet():
            return self.snapshot
        external = self._opened(whole=full)
        if self._is_long:
            self._glance(external)
        else:
            self._read_external(budget, anyway=full)
        self._ask_store()
        self._full, self._outdated = full, False
        return self._compose(full)

    def _opened(self, *, whole: bool) -> ExternalMetrics:
        """Return the reader of its curves, opened anew for the first full view and after the run was resumed."""
        if self._begun_again:
            self._parts, self.external, self._whole = len(self.stored.parts), None, False
            self._best.begin_again()
        if self.external is None or (whole and not self._whole):
            newest, self._whole = self.external.newest if self.external is not None else {}, whole
            store = SeriesStore(capacity=self.capacity, only=None if whole else _InLists())
            self.external = metrics_of_run(self.stored, self.machine.clock, store)
            self.external.show(newest)
            self.external.poll()
        return self.external

    def _is_quiet(self) -> bool:
        """True if an ended run can stay in the list as it is."""
        external = self.external
        if self._full or external is None or not (self.settled and self.caught_up):
            return False
        before = external.file.changed_at
        external.poll()
        return external.file.changed_at == before and (self._is_long or not external.pending_bytes)

    def _glance(self, external: ExternalMetrics) -> None:
        """Read the end of a long run, and ask once for best values that others have found."""
        external.poll()
        if not external.newest or self._mark() != self._glanced_at:
            self._glanced_at = self._mark()
            external.preview()
            external.glance()
        self._best.recall(self._mark())

    def _ask_store(self) -> None:
        """Ask the store about the run, if the answer may have changed."""
        self._metrics = (self.external and self.external.metric_file) or self._metrics
        mark = self._mark(), self._metrics.position if self._metrics is not None else 0
        if mark == self._told_at:
            return
        try:
            told = self.stored.told(self._metrics)
        except OSError:
            return
        if (told.argv, told.config) != (self._told.argv, self._told.config):
            self._asked, self._settings = asked_totals(told.argv, told.config), masked(told.config)
        self._told, self._told_at = told, mark

    def _unreadable(self, why: str) -> RunSnapshot:
        return self._snapshot(State.WATCHED, why)

    def _compose(self, full: bool) -> RunSnapshot:
        told, updated, external = self._told, self._updated(), self.external
        condition = self._foreign_condition(ended=self._is_closed)
        numbers = self._numbers(moving=condition.moves)
        is_left = told.state is None and self.writes is False
        lost = is_left and self.stored.records_ends
        curves, ended = self._curves(full, numbers.told_by), told.ended if self._is_closed else None
        if ended is None and is_left:
            ended = updated
        elif ended is None and told.state is not None:
            ended = told.started + told.runtime if told.started and told.runtime else updated
        code = told.exit_code
        return replace(
            self._snapshot(told.state or (State.LOST if lost else State.WATCHED), self._reason(updated)),
            health=condition.health,
            health_note=condition.note,
            silent=condition.silent and condition.health is None,
            numbers=replace(numbers, done=True) if told.state is State.FINISHED else numbers,
            updated=updated,
            series=dict(sorted(curves.items(), key=lambda curve: curve[0].startswith(SYSTEM))),
            output=self.stored.output if full else None,
            outputs=tuple(self.stored.outputs) if full and self._parts > 1 else (),
            attempt=self._parts if self._parts > 1 else 0,
            attempts=self._parts if self._parts > 1 else 0,
            extremes=self._known_extremes(),
            readers=f"{self.stored.store}: {external.source}" if external is not None else None,
            loading=full and external is not None and external.behind,
            brief=not full,
            unread=self.unread,
            kept=external.kept if full and external is not None else (),
            started=told.started,
            attempt_started=told.resumed or told.started,
            idle=told.idle,
            ended=ended,
            exit=ExitSummary(code, None, None, None, ended=ended) if code is not None else None,
            argv=tuple(masked_words(told.argv)),
            settings=self._settings,
        )

    def _written(self) -> list[float]:
        """Return the times of its last writes; in files shared with other runs, only its own records count."""
        newest = number(self.external.newest.get("time")) if self.external is not None else None
        return [newest] if newest is not None and self.stored.is_shared else super()._written()

    @property
    def _gone(self) -> str:
        if self.stored.own_files():
            return super()._gone
        return f"process {self._writers.gone}, the last to write {self.stored.path.name}, has ended"

    def _written_files(self) -> Sequence[Path]:
        return self.stored.own_files() or self.stored.files()

    def _sees_writer(self) -> bool | None:
        lives = super()._sees_writer()
        return None if lives and not self.stored.own_files() else lives

    @property
    def _is_closed(self) -> bool:
        """True if the store has recorded an end (perhaps only its time), and the run has not logged anything since."""
        ended, newest = self._told.ended, max(self._written(), default=-math.inf)
        return self._told.state is not None or (ended is not None and newest <= ended + _CLOSING_SECONDS)

    def _known_extremes(self) -> Extremes:
        """Return the extremes of the metrics that a list judges by, updated once the whole run was read."""
        if self.external is not None and self.external.complete and not self._is_long:
            self._best.add(self.external.store.extremes())
        return self._best.found

    def _snapshot(self, state: State, reason: str) -> RunSnapshot:
        """Return a snapshot with everything but the numbers."""
        told, path = self._told, self.stored.path
        return RunSnapshot(
            run=self.stored.key,
            name=told.name or self.stored.name,
            dir=path if path.is_dir() else path.parent,
            state=state,
            reason=reason,
            seen=self.machine.clock(),
            tags=told.tags,
            note=told.note,
            store=self.stored.store,
            brief=not self._full,
            gone=self.external is not None and self.external.file.size > 0 and self.external.file.changed_at is None,
        )

    def _reason(self, updated: float | None) -> str:
        store, told = self.stored.store, self._told
        if self.external is not None and self.external.unreadable:
            return f"{self.external.path.name} cannot be read"
        if told.state is not None:
            return f"{store} has recorded its end: {told.says or told.state}"
        is_told = told.says and (told.ended is None or self._is_closed)
        says = f"{store} says {told.says}" if is_told else f"{store} has recorded no end"
        says = f"{says}; {self._gone}" if self.writes is False else says
        return f"{says}; {written_ago(self.machine.clock() - updated)}" if updated is not None else says


class FolderReader(WatchedReader):
    """A stored run whose folder is read like any other, combined with what the store says about it."""

    def __init__(self, stored: StoredRun, machine: LocalMachine, columns: int | None = None) -> None:
        super().__init__(stored.path, machine, columns)
        self._stored = stored
        self._told = RunTold()
        self._settings: Mapping[str, str] = {}
        self._tell_at = -math.inf

    def _compose(self, full: bool) -> RunSnapshot:
        if self.machine.monotonic() >= self._tell_at:
            self._tell_at = self.machine.monotonic() + TELL_SECONDS
            with contextlib.suppress(OSError):  # keep what was read before
                self._told = self._stored.told(None)
            self._asked = asked_totals(self._told.argv, self._told.config)
            self._settings = masked(self._told.config)
        seen = super()._compose(full)
        return replace(
            seen,
            run=self._stored.key,
            name=self._told.name or self._stored.name,
            argv=tuple(masked_words(self._told.argv)),
            settings={**seen.settings, **self._settings},
            store=self._stored.store,
        )


def reader_of(
    stored: StoredRun, machine: LocalMachine, columns: int | None = None, kept: KeptBest | None = None
) -> RunFollower:
    """Return a reader for a run of a store."""
    if stored.is_folder:
        return FolderReader(stored, machine, columns)
    return StoredReader(stored, machine, columns, kept)
