"""Read the files of one run: the records and locks that prove its state, and its metric points."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...wire import liveness, storage
from ...wire.liveness import Process, ProcessIdentity
from ...wire.moves import Leaving, Move
from ...wire.records import ExitRecord, LaunchRecord, Spec, Status
from ...wire.rundir import RunDir, is_marked
from ..follow import SLICE_BYTES, Budget, LineTail, RecordFile, hundredths, last_lines
from ..model.moves import Moving
from ..model.snapshot import SeriesView, State
from ..series.pyramid import CAPACITY
from ..series.series import MOST_SERIES, SeriesStore
from .local_machine import LocalMachine
from .scheduled import JobReader, as_called_off, derive_scheduled
from .state import RunWitnesses, StateVerdict, derive, while_moved
from .waiting import elsewhere, is_moving, wished

NEWEST_BYTES = 1 << 16
SMALL_BYTES = 1 << 17
"""A file up to this size is read completely; a larger one is sampled."""
SAMPLES = 120
SAMPLE_BYTES = 2048
NEWEST_LINES = 4
LONG_LINES = 8
"""If lines are so long that samples miss them, the samples are made this many times longer, and fewer by as much."""
SKETCH_CAPACITY = 256
SKETCH_GROWTH = 1.05
"""A sketch is made again when the file has grown by this factor."""


class WitnessReader:
    """Polls the witnesses of one run's state: records, locks, processes."""

    def __init__(self, run: RunDir, machine: LocalMachine) -> None:
        self.run = run
        self.machine = machine
        self.spec = RecordFile(run.spec, partial(storage.from_json, Spec))
        self.status = RecordFile(run.status, partial(storage.from_json, Status))
        self.moving = RecordFile(run.moving, lambda found: Moving(*storage.from_json(Leaving, found)))
        self.moved = RecordFile(run.moved, partial(storage.from_json, Move))
        self.folder = run.attempt(1)
        """The folder of the attempt that is shown, usually the newest."""
        self.exit = RecordFile(self.folder.exit, partial(storage.from_json, ExitRecord))
        self.launch = RecordFile(self.folder.launch, partial(storage.from_json, LaunchRecord))
        self._job = JobReader(run)
        self.attempt = self.attempts = 0
        self._rehearsed: dict[int, int] = {}
        """For each finished rehearsal, the attempt that it rehearsed for."""
        self.settled = False
        """Whether nothing of the run is alive or pending, so that only a new attempt can change it."""
        self.same_boot: bool | None = None
        self.seen = RunWitnesses()
        """What was last seen, without the phase from the heartbeat."""
        self.verdict = StateVerdict(State.STARTING, "")
        self.trainer_lives = False
        self._judged: RunWitnesses | None = None
        self._mark: tuple[object, object] | None = None
        self._name, self._status_name = str(run.path), str(run.status)
        self._attempts_folder = self.folder.path.parent
        self._locks = (run.supervisor_lock, run.run_lock)

    def unchanged(self) -> bool:
        """True if a settled run is unchanged. Takes two stats: a new attempt replaces ``status.json`` in the folder."""
        return self.settled and self._marks(self._folder_time()) == self._mark

    def believe(self) -> None:
        """Take the run as settled in its present state: an earlier process has examined it."""
        self.settled, self._mark = True, self._marks(self._folder_time())

    def poll(self) -> None:
        """Read the records, locks and processes; :meth:`judge` says what they mean."""
        changed = self._folder_time()
        self._mark = self._marks(changed)
        age = max(0.0, self.machine.clock() - changed / 1e9) if changed is not None else 0.0
        self.seen = self._gather(age)
        if self.seen.exit is None and not self.seen.supervisor_held and not self.seen.trainer_lives:
            # The locks were read before the records, and an attempt may have begun in between: look once more before
            # calling the run lost.
            self.seen = self._gather(age)

    def judge(self, phase: str | None) -> StateVerdict:
        """Return the verdict on all witnesses together.

        Args:
            phase: from the last heartbeat of the newest attempt, read after its exit record.
        """
        seen = self.seen._replace(phase=phase)
        if seen != self._judged:
            verdict = derive_scheduled(seen, seen.job) if seen.job is not None and not seen.newer else derive(seen)
            self._judged, self.verdict, self.trainer_lives = seen, while_moved(seen, verdict), seen.trainer_lives
            self.settled = not (self.verdict.state.active or seen.supervisor_held or self.trainer_lives)
        return self.verdict

    def trainer(self) -> Process | None:
        """Return the trainer's row in the process table while it lives; None during a pause: the row may be older."""
        status = self.status.value
        identity = status.trainer if status and self.same_boot is not False else None
        if identity and status and status.paused:
            self.machine.forget(identity)
            return None
        return self.machine.process(identity) if identity else None

    def _gather(self, age_seconds: float) -> RunWitnesses:
        doubtful: list[tuple[str, str]] = []
        held = []
        for lock in self._locks:
            try:
                held.append(liveness.is_held(lock))
            except OSError as error:
                held.append(False)
                doubtful.append((lock.name, f"{lock.name}: {error.strerror}"))
        supervisor_held, run_held = held
        self.spec.read()
        rule = self.spec.value.engine if self.spec.value is not None else None
        asked = wished(self.run) if rule is not None else frozenset()  # read before the records that answer it
        for record in (self.status, self.moving, self.moved):
            record.read()
        self._find_attempt()
        status, ended, job = self.status.value, self.exit.value, None
        if rule is not None:  # only an attempt in a scheduler's job can end to be requeued
            job, ended = self._job.view(rule), as_called_off(ended, status)
        boots = (status.boot_id, self.machine.boot_id) if status else ("", "")
        self.same_boot = boots[0] == boots[1] if all(boots) else None
        waits = status is not None and status.phase == "queued" and not supervisor_held
        is_moved = self.machine.heeds_moves and self.moving.value and not self.moved.value and is_moving(self.run)
        files = (self.spec, self.status, self.exit)
        return RunWitnesses(
            spec=self.spec.value,
            job=job,
            wished=asked if ended is not None else frozenset(),
            moved=self.moved.value,
            status=status,
            exit=ended,
            attempt=self.attempt,
            supervisor_held=supervisor_held,
            moving=self.moving.value if is_moved else None,
            run_held=run_held,
            alive=self._alive(status, ended, supervisor_held and run_held),
            supervisor_stopped=supervisor_held and self._is_stopped(status.supervisor if status else None),
            same_boot=self.same_boot,
            elsewhere=elsewhere(self.run, self.spec.value, status) if status and waits else "",
            age_seconds=0.0 if supervisor_held and self.spec.value else age_seconds,
            ended_seconds_ago=self.machine.clock() - ended.ended if ended else None,
            begun=bool(ended or self.launch.value or (status and status.trainer) or self.launch.error),
            unreadable=(
                *((file.path.name, file.error) for file in files if file.error and not file.newer),
                *doubtful,
            ),
            newer=tuple((file.path.name, file.error) for file in files if file.error and file.newer),
        )

    def _is_stopped(self, supervisor: ProcessIdentity | None) -> bool:
        """True if the recorded supervisor is frozen, according to the process table as last read."""
        found = self.machine.process(supervisor) if supervisor and self.same_boot is not False else None
        return found is not None and found.state == "T"

    def _find_attempt(self) -> None:
        """Find the newest attempt: the highest number in the status or among the folders.

        A rehearsal that has ended does not count: the run is back where the attempt it rehearsed for left it.
        """
        told = self.status.value.attempt if self.status.value else 0
        try:
            names = os.listdir(self._attempts_folder)  # noqa: PTH208 - a path object for each entry is too slow
        except OSError:
            names = []
        self.attempts = max([told, *(int(name) for name in names if name.isascii() and name.isdigit())])
        self._look_at(self._rehearsed.get(self.attempts, self.attempts))
        launch = self.launch.value
        if launch is not None and launch.rehearsal is not None and self.exit.value is not None:
            self._rehearsed[self.attempts] = launch.rehearsal.of
            self._look_at(launch.rehearsal.of)

    def _look_at(self, number: int) -> None:
        self.attempt = number
        if number > 0 and number != self.folder.number:
            self.folder = self.run.attempt(number)
            self.exit = RecordFile(self.folder.exit, partial(storage.from_json, ExitRecord))
            self.launch = RecordFile(self.folder.launch, partial(storage.from_json, LaunchRecord))
        self.exit.read()
        self.launch.read()

    def _alive(self, status: Status | None, ended: ExitRecord | None, both_held: bool) -> tuple[int, ...]:
        """Return the recorded processes that are alive; they are looked up only if the locks leave any doubt."""
        if status is None or self.same_boot is False:
            return ()
        identities, trainer = status.tree, status.trainer
        if ended is not None:
            left = {*ended.survivors, *status.survivors}
            return self.machine.alive(one for one in identities if one.pid in left) if left else ()
        if both_held and status.phase != "stop_failed":
            return ()
        known = [trainer, *identities] if trainer else identities
        return tuple(pid for pid in self.machine.alive(known) if is_marked(self.run, pid))

    def _marks(self, changed: int | None) -> tuple[object, object]:
        """Return what differs after a change. The folder's time alone may not: two changes can share one clock tick."""
        return changed, storage.stamp(self._status_name)

    def _folder_time(self) -> int | None:
        try:
            return os.stat(self._name).st_mtime_ns  # noqa: PTH116 - half the price of Path.stat
        except OSError:
            return None


class PointReader:
    """Follows ``metrics.jsonl``: the newest values at once, the whole history in slices, and a sample of it until then.

    ``newest`` holds the last reported value of every key. The curves are a *sketch* (about a hundred lines spread over
    the file) until :meth:`read_history` has read all of it.
    """

    def __init__(self, path: Path, most: int = CAPACITY) -> None:
        """``most``: the number of buckets per curve unless :meth:`allot` sets a limit for all."""
        self.path = path
        self.newest: dict[str, Any] = {}
        self.tail = LineTail(path)
        self._most = most
        self._history: LineTail | None = None
        self._store = SeriesStore(capacity=most)
        self._sketch = SeriesStore(capacity=SKETCH_CAPACITY)
        self._sketched: tuple[int, frozenset[str] | None] = 0, None
        """The size of the file when the sketch was made, and the metrics in it; None: all of them."""
        self._buckets: int | None = None
        self.complete = False
        """Whether the curves hold every point."""

    @property
    def pending_bytes(self) -> int:
        """How many bytes are still unread of a history that is being read."""
        return self._history.unread_bytes if self._history is not None and not self.complete else 0

    def read_newest(self) -> list[Mapping[str, Any]]:
        """Return the records that were added, oldest first; if there are many, only the newest of them."""
        size = self._size()
        if size - self.tail.offset > NEWEST_BYTES * 4:
            self.tail = LineTail(self.path, start=size - NEWEST_BYTES)  # a partial first line is not a valid record
        growth = self.tail.read(NEWEST_BYTES * 4)
        if growth.restarted:
            self.newest.clear()
            self._sketch, self._sketched = SeriesStore(capacity=SKETCH_CAPACITY), (0, None)
            self.drop_history()
        records = parse_lines(growth.data)
        self._note(records)
        return records

    def _note(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Remember the newest values; those of an ended attempt do not carry over to the next one."""
        for record in records:
            if record.get("attempt") != self.newest.get("attempt") or len(self.newest) > 2 * MOST_SERIES:
                self.newest.clear()
            self.newest.update(record)

    def sketch(self, names: frozenset[str] | None = None) -> None:
        """Make the sketch, or make it again if the file has outgrown it."""
        size, (sketched, held) = self._size(), self._sketched
        lacks = held is not None and names is None
        if not size or (self._sketch.count and not lacks and sketched <= size < sketched * SKETCH_GROWTH):
            return
        records = sample_records(self.path, size)
        self._sketch = SeriesStore(capacity=SKETCH_CAPACITY, only=names)
        self._sketch.add(records)
        self._sketched = size, names
        if not self.newest:
            self._note(records)

    def read_history(self, budget: Budget) -> bool:
        """Read on, starting at the beginning of the file; return True if something was added."""
        if self._history is None:
            self._history, self._store = LineTail(self.path), SeriesStore(capacity=self._capacity())
        added = False
        while True:
            growth = self._history.read(SLICE_BYTES)
            if growth.restarted:
                self._store = SeriesStore(capacity=self._capacity())
            if growth.data:
                added = True
                self._store.add(parse_lines(growth.data))
            if not growth.more:
                self.complete = True
                return added
            if budget.spent:
                return added

    def allot(self, buckets: int | None) -> None:
        """Limit the number of buckets of all curves together; None: no common limit.

        A history held in less detail because of a former limit is read again; one held in more detail is kept.
        """
        if buckets is None and self._buckets is not None:
            self.drop_history()
        if self._history is None:
            self._buckets = buckets

    def _capacity(self) -> int:
        if self._buckets is None:
            return self._most
        return max(SKETCH_CAPACITY, min(CAPACITY, self._buckets // max(1, len(self._sketch))))

    def drop_history(self) -> None:
        """Free the memory of the history; a later :meth:`read_history` starts over."""
        self._history, self._store, self.complete = None, SeriesStore(capacity=self._most), False

    def views(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Return the curves by name, from the history if it is complete, else from the sketch."""
        if self.complete:
            return self._store.views(names, complete=True, **options)
        read, size = (self._history.offset, self._history.size) if self._history is not None else (0, 0)
        return self._sketch.views(names, complete=False, read_share=hundredths(read, size), **options)

    def _size(self) -> int:
        found = storage.stat_of(self.path)
        return found.st_size if found else 0


def parse_lines(data: bytes) -> list[Mapping[str, Any]]:
    """Return the objects among the JSON lines of ``data``. A damaged line is skipped and does not affect the others."""
    lines = data.split(b"\n")
    try:
        found = json.loads(b"[" + b",".join(line for line in lines if line.strip()) + b"]")
    except (ValueError, RecursionError):
        found = []
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                found.append(json.loads(line))
    return [record for record in found if type(record) is dict]


def sample_records(path: Path, size: int) -> list[Mapping[str, Any]]:
    """Return about a hundred records spread evenly over a file of ``size`` bytes, including the first and the last."""
    if size <= SMALL_BYTES:
        found = last_lines(path, size).splitlines(keepends=True)
        every = 1 + len(found) // SAMPLES
        return parse_lines(b"".join(found if every == 1 else [*found[:-NEWEST_LINES:every], *found[-NEWEST_LINES:]]))
    lines = _spread_lines(path, size, SAMPLES, SAMPLE_BYTES)
    if len(lines) < SAMPLES // 2:
        lines = _spread_lines(path, size, SAMPLES // LONG_LINES, SAMPLE_BYTES * LONG_LINES)
    return parse_lines(b"".join(lines) + last_lines(path, SAMPLE_BYTES * 2))


def _spread_lines(path: Path, size: int, count: int, length: int) -> list[bytes]:
    """Return the first complete line in each of ``count`` evenly spaced stretches of ``length`` bytes."""
    lines = []
    try:
        with storage.open_file(path) as file:
            for i in range(count):
                at = i * (size - length) // count
                data = os.pread(file.fileno(), length, at)
                start = data.find(b"\n") + 1 if at else 0
                lines.append(data[start : data.find(b"\n", start) + 1])
    except OSError:
        return []
    return [line for line in lines if line]
