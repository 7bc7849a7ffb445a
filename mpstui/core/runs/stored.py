"""Runs in the stores of experiment trackers: read where they lie, and as live or ended as the store shows."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...wire.heartbeat import number
from ...wire.secrets import masked, masked_words
from ..follow import Budget, FollowedFile
from ..formats.stores import StoredRun, find_runs
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
from .sources import MetricSource
from .stored_best import BestReader, KeptBest, stamps_of
from .stored_metrics import followed
from .watched import WatchedReader, written_ago

if TYPE_CHECKING:
    from ..formats.files import MetricFile

LIST_BYTES = 4 << 20
"""Of a longer run the list shows the newest values, and the best ones once all of it has been read; its curves are
read when it is opened."""
OLD_SECONDS = 60.0
"""A run that has not grown for so long is over for now, whether or not its end was recorded."""
LOOK_SECONDS = 2.0
"""How often a folder is searched for further runs."""
_CLOSING_SECONDS = 5.0
"""What is written this long after the recorded end belongs to it."""
MOST_RUNS = 1000
"""The most runs shown of one folder, the newest."""
LOOKING_SHARE = 0.05
"""At most this share of a core: a large folder is searched less often."""


class _InLists:
    """The names of what a list shows of a run: its loss, and the metric that judges it."""

    def __contains__(self, name: object) -> bool:
        return name in LIST_SERIES or (isinstance(name, str) and is_evaluation(name) and better(name) is not None)


class StoredReader(ForeignReader):
    """One run of a store. Its files are only read; it counts as ended only if the store has recorded that."""

    def __init__(
        self, stored: StoredRun, machine: LocalMachine, columns: int | None = None, kept: KeptBest | None = None
    ) -> None:
        """``kept``: what others have found in long runs."""
        super().__init__(machine, Path(stored.key), columns)
        self.stored = stored
        self._kept = kept
        self._best: BestReader | None = None
        self._best_at: object = None
        """The state of its files when a long run's best values were known, and when they were requested."""
        self._asked_at: object = None
        self._reader: MetricFile | None = None
        self._begun = len(stored.parts)
        self._whole = False
        """All of its curves are held, not only what a list shows."""
        self._told = RunTold()
        self._settings: Mapping[str, str] = {}
        """Its configuration, secrets masked."""
        self._extremes: Extremes = {}
        self._glanced_at: float | None = None
        """When the file last changed whose end was looked at."""
        self._told_at: object = None
        """The state of its files then."""

    @property
    def settled(self) -> bool:
        return self._told.state is not None and self.snapshot is not None and not self._begun_again

    @property
    def caught_up(self) -> bool:
        return self._failed or (self._seen and not self._begun_again and (self._passes_over or super().caught_up))

    @property
    def unread(self) -> bool:
        return not (self._passes_over and self._seen) and super().unread

    @property
    def list_pending_bytes(self) -> int:
        return 0 if self._passes_over and self._seen else super().list_pending_bytes

    @property
    def pending_bytes(self) -> int:
        return sum(file.pending_bytes for file in self._files()) if self._whole else 0

    @property
    def _begun_again(self) -> bool:
        """Whether somebody has resumed it since it was read."""
        return self._begun != len(self.stored.parts)

    @property
    def _seen(self) -> bool:
        return self.snapshot is not None and not self._outdated

    @property
    def _passes_over(self) -> bool:
        """Whether only the end of what is there is read, since a list needs no more."""
        return self.external is not None and not self._whole and self.external.file.size > LIST_BYTES

    @property
    def lacks_best(self) -> bool:
        if not (self._seen and self._passes_over) or self._failed:
            return False
        return self._best_at != self._mark() or (self._best is not None and self._is_over())

    def read_best(self, budget: Budget) -> None:
        if self._best is None:
            self._best = BestReader(self.stored, self.machine.clock, _InLists())
        mark, stamps = self._mark(), stamps_of(self.stored.files())
        found = self._best.read(budget)
        if found is None:
            return
        self._know_best(found, mark)
        if self._is_over():
            self._best = None  # read again, should somebody resume it
            if self._kept is not None:
                self._kept.keep(self.stored.key, stamps, found)

    def _know_best(self, found: Extremes, mark: object) -> None:
        self._extremes, self._best_at, self._outdated = {**self._extremes, **found}, mark, True

    def _mark(self) -> object:
        """What reveals that a file has grown."""
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
        """Its curves can be read again."""
        if self._whole:
            self._whole, self._full, self.external = False, False, None

    def _refreshed(self, full: bool, budget: Budget) -> RunSnapshot:
        if not full and self.snapshot is not None and self._is_quiet():
            return self.snapshot
        if self._begun_again:
            self._begun, self.external, self._whole, self._best = len(self.stored.parts), None, False, None
        if self.external is None or (full and not self._whole):
            before, self._whole = self.external, full
            self.external = self._open_metrics()
            self.external.show(before.newest if before is not None else {})
            self.external.poll()
        if self._passes_over:
            self._glance(self.external)
        else:
            self._read_external(budget, anyway=full)
        self._told = self._ask_store()
        self._full, self._outdated = full, False
        return self._compose(full)

    def _is_quiet(self) -> bool:
        """Whether an ended run can stay in the list as it is."""
        external = self.external
        if self._full or external is None or not (self.settled and self.caught_up):
            return False
        before = external.file.changed_at
        external.poll()
        return external.file.changed_at == before and (self._passes_over or not external.pending_bytes)

    def _glance(self, external: ExternalMetrics) -> None:
        external.poll()
        if not external.newest or external.file.changed_at != self._glanced_at:
            self._glanced_at = external.file.changed_at
            external.preview()
            external.glance()
        if self._kept is not None and self._asked_at != self._mark():
            self._asked_at = self._mark()
            found = self._kept.find(self.stored.key, stamps_of(self.stored.files()))
            if found is not None:
                self._know_best(found, self._asked_at)

    def _open_metrics(self) -> ExternalMetrics:
        only = None if self._whole else _InLists()
        store = SeriesStore(capacity=self.capacity, only=only)
        return ExternalMetrics(
            self.stored.path, self.machine.clock, store=store, file=followed(self.stored), opened=self._source
        )

    def _source(self, file: FollowedFile) -> MetricSource | None:
        try:
            self._reader = self.stored.open()
        except OSError:
            return None
        return None if self._reader is None else MetricSource(file, self._reader)

    def _ask_store(self) -> RunTold:
        file = self.external.file if self.external is not None else None
        read = self._reader.position if self._reader is not None else 0
        mark = (file and file.changed_at, file and file.size, read)
        if mark == self._told_at:
            return self._told
        try:
            told = self.stored.told(self._reader)
        except OSError:
            return self._told
        self._told_at = mark
        if told is not self._told and (told.argv, told.config) != (self._told.argv, self._told.config):
            self._asked, self._settings = asked_totals(told.argv, told.config), masked(told.config)
        return told

    def _unreadable(self, why: str) -> RunSnapshot:
        return self._snapshot(State.WATCHED, why)

    def _compose(self, full: bool) -> RunSnapshot:
        told, updated, external = self._told, self._updated(), self.external
        condition = self._foreign_condition(ended=self._is_closed)
        numbers = self._numbers(moving=condition.moves)
        is_left = told.state is None and self.writes is False
        lost = is_left and self.stored.records_ends
        curves, ended = self._curves(full, numbers.told_by.get("loss")), told.ended if self._is_closed else None
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
            outputs=tuple(self.stored.outputs) if full and self._begun > 1 else (),
            attempt=self._begun if self._begun > 1 else 0,
            attempts=self._begun if self._begun > 1 else 0,
            extremes=self._known_extremes(),
            readers=f"{self.stored.store}: {external.source}" if external is not None else None,
            loading=full and external is not None and external.behind,
            brief=not full,
            unread=self.unread,
            kept=external.kept if full and external is not None else (),
            started=told.started,
            attempt_started=told.started,
            ended=ended,
            exit=ExitSummary(code, None, None, None, ended=ended) if code is not None else None,
            argv=tuple(masked_words(told.argv)),
            settings=self._settings,
        )

    def _written(self) -> list[float]:
        """Of files that others write too only what it logged itself tells that it moves."""
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
        """Whether the store has recorded its end, be it only when that was; unless it was resumed and logged since."""
        ended, newest = self._told.ended, max(self._written(), default=-math.inf)
        return self._told.state is not None or (ended is not None and newest <= ended + _CLOSING_SECONDS)

    def _known_extremes(self) -> Extremes:
        """Of the metrics that judge a run in a list, once all of it was read; else what was known."""
        if self.external is not None and self.external.complete and not self._passes_over:
            self._extremes = {**self._extremes, **self.external.store.extremes()}
        return self._extremes

    def _snapshot(self, state: State, reason: str) -> RunSnapshot:
        """Everything that needs no numbers."""
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
    """A run of a store that is a folder like any other, together with what the store says about it."""

    def __init__(self, stored: StoredRun, machine: LocalMachine, columns: int | None = None) -> None:
        super().__init__(stored.path, machine, columns)
        self._stored = stored
        self._told = RunTold()
        self._settings: Mapping[str, str] = {}
        self._tell_at = -math.inf

    def _compose(self, full: bool) -> RunSnapshot:
        if self.machine.monotonic() >= self._tell_at:
            self._tell_at = self.machine.monotonic() + LOOK_SECONDS
            with contextlib.suppress(OSError):  # what was read before still holds
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
    """A reader for a run of a store."""
    if stored.is_folder:
        return FolderReader(stored, machine, columns)
    return StoredReader(stored, machine, columns, kept)


class StoreFolder:
    """The runs below one folder, or of one database: searched again and again, since others may begin."""

    def __init__(self, path: Path, found: Sequence[StoredRun]) -> None:
        self._path = path
        self._known = {run.key: run for run in found}
        self._fresh: list[StoredRun] = list(found[:MOST_RUNS])
        self._shown = len(self._fresh)
        self._look_at = 0.0

    @property
    def left_out(self) -> int:
        """Runs that are too old to be shown."""
        return len(self._known) - self._shown

    def look(self, machine: LocalMachine) -> list[StoredRun]:
        """Runs that have appeared since the last call, the newest first."""
        fresh, self._fresh = self._fresh, []
        begun = machine.monotonic()
        if not fresh and begun >= self._look_at:
            folders = {str(one.path) for run in self._known.values() for one in run.parts}
            begun_again = {run.joins: run for run in self._known.values() if run.joins}
            found = find_runs(self._path, folders.__contains__ if folders else None)
            fresh = []
            for run in found:
                known = begun_again.get(run.joins) or self._known.get(run.key)
                if known is None:
                    fresh.append(run)
                elif len(run.parts) > 1 or run.key != known.key:
                    known.join(run)
            self._known |= {run.key: run for run in fresh}
            fresh = fresh[: max(0, MOST_RUNS - self._shown)]
            self._shown += len(fresh)
            self._look_at = begun + max(LOOK_SECONDS, (machine.monotonic() - begun) / LOOKING_SHARE)
        return fresh
