"""Reports what happens to runs as one object per event, for scripts that read lines and keep no state.

Each line of a file is reported once. A *place* records how far each file of a run was reported, so that a later process
can continue from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...wire import heartbeat
from ...wire.rundir import RunDir, run_dirs
from ..follow import SLICE_BYTES, Budget, FollowedFile, Occasional
from ..model.home import Home
from ..model.snapshot import Checkpoint, RunSnapshot, State
from ..present import badge
from ..series.metric_words import NOT_METRICS
from ..series.series import SeriesStore
from .checkpoints import LOOK_SECONDS, CheckpointScanner
from .external import RUNS_PER_ATTEMPT, ExternalMetrics
from .find import find_run, is_path
from .follower import RunFollower
from .journal import EVENT_FIELDS
from .local_machine import LocalMachine, machine_here
from .reader import RunReader
from .stored import StoredReader
from .stored_metrics import metrics_of
from .streamed_files import LONGEST_LINE_BYTES, HeldFile, OwnFile, OwnRecords, end_of_lines
from .watching import Watching

Told = dict[str, Any]
GLANCE_SECONDS = 0.2
HOLD_SECONDS = 3.0
"""How long output is held back, lest it count twice: a program that reports by itself starts doing so by then."""
SETTLED_SECONDS = 1.0
"""How often an ended run is checked: it may be restarted."""
_PLACES = ("epoch", "step")


class _Points(SeriesStore):
    """Collects the records that would make up the curves, point by point."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Told] = []

    def emptied(self) -> SeriesStore:
        return self

    def add(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.taken += (dict(record) for record in records)

    def add_columns(
        self,
        attempt: int,
        columns: Mapping[str, Sequence[float]],
        *,
        steps: Sequence[float] | None,
        epochs: Sequence[float],
        times: Sequence[float],
    ) -> None:
        for at in range(len(epochs)):
            place = {"time": times[at], "epoch": epochs[at], "step": steps[at] if steps is not None else None}
            values = {name: column[at] for name, column in columns.items()}
            self.taken.append({**values, **place, "attempt": attempt})


class RunStream:
    """Streams one run, ours or foreign, from its beginning or from a place on."""

    def __init__(
        self,
        reader: RunFollower,
        machine: LocalMachine,
        *,
        log: bool = False,
        place: Mapping[str, Any] | None = None,
        only_new: bool = False,
    ) -> None:
        """
        Args:
            log: include its output, line by line.
            place: where an earlier stream of the run ended, see :attr:`place`.
            only_new: treat everything already there as reported.
        """
        self.reader = reader
        self._run = reader.run if isinstance(reader, RunReader) else None
        self._machine, self._log, self._skips = machine, log, only_new
        self.place: Told = {"printed": [0, 0], "log": [0, 0], "saved": {}, "state": None, **(place or {})}
        """How much of the run has been reported so far, as JSON."""
        self._tails: dict[str, OwnRecords] = {}
        self._points = _Points()
        self._printed: ExternalMetrics | None = None
        self._begun = 1
        self._counted = self._known = 0
        """Points taken from the file that ``_printed`` reads, and how many of them had been reported before."""
        self._output: FollowedFile | None = None
        self._torn = b""
        self._scanner, self._found = CheckpointScanner(), Occasional[tuple[Checkpoint, ...]](LOOK_SECONDS, ())
        self.snapshot: RunSnapshot | None = None

    @property
    def has_settled(self) -> bool:
        """True if nothing more will come unless the run is started again."""
        over = self._run is None and self.snapshot is not None and self.snapshot.is_over
        return over or self.reader.settled

    def read(self) -> Iterator[Told]:
        """Yield what has happened since the last call."""
        seen = self.snapshot = self.reader.look(GLANCE_SECONDS)
        skips, self._skips = self._skips, False
        for kind, parts in self._parts(seen, skips):
            moment, attempt = parts.pop("time", None), parts.pop("attempt", seen.attempt)
            if not skips:
                yield {"kind": kind, "run": seen.run, "time": moment, "attempt": attempt, **parts}

    def _parts(self, seen: RunSnapshot, skips: bool) -> Iterator[tuple[str, Told]]:
        moving = seen.moving and seen.moving._asdict()
        word = badge(seen).word
        state = [seen.state, seen.health, seen.attempt, seen.moved_to, moving]
        state += [word] if seen.state is State.WATCHED else []  # a watched run has no other state that changes
        if state != self.place["state"]:
            before, self.place["state"] = self.place["state"], state
            moment = seen.ended if seen.ended is not None else seen.seen
            told: Told = {"state": seen.state, "health": seen.health, "word": word, "reason": seen.reason}
            told |= {"moving": moving, "moved_to": seen.moved_to, "before": before and before[0]}
            yield "state", {"time": moment, "name": seen.name, **told}
        if isinstance(self.reader, RunReader):
            run = self.reader.run
            for record in self._added("events", run.events, skips):
                told = {name: record.get(name) for name in EVENT_FIELDS}
                yield "event", {**told, "details": {k: v for k, v in record.items() if k not in EVENT_FIELDS}}
            source = "agent" if self.reader.own_name == "agent" else "reported"
            for record in self._added("points", run.metrics, skips):
                if point := _point(record):
                    yield "point", {**point, "source": source}
            yield from (("checkpoint", told) for told in self._saved(seen, self.reader))
        yield from (("point", {**told, "source": "printed"}) for told in self._read_printed(seen, skips))
        if self._log:
            yield from (("log", told) for told in self._read_log(seen, skips))

    def _added(self, name: str, path: Path, skips: bool) -> Iterator[Mapping[str, Any]]:
        tail = self._tails.get(name)
        if tail is None:
            start = self.place.get(name, 0)
            tail = self._tails[name] = OwnRecords(path, start=end_of_lines(path) if skips and not start else start)
        yield from tail.take_records()
        self.place[name] = tail.offset

    def _saved(self, seen: RunSnapshot, reader: RunReader) -> Iterator[Told]:
        """Yield complete checkpoints; one that is overwritten is reported again."""

        def look() -> tuple[Checkpoint, ...]:
            return self._scanner.of_run(reader.run.path, reader.witnesses.seen, seen.numbers, ())

        found = self._found.get(self._machine.monotonic(), (seen.numbers.checkpoint, seen.state), look)
        known, self.place["saved"] = self.place["saved"], {str(one.path): one.time for one in found if one.complete}
        for one in reversed(found):
            if one.complete and known.get(str(one.path)) != one.time:
                told = {"path": str(one.path), "bytes": one.size_bytes, "step": one.step, "best": one.best}
                yield {"time": one.time, **told}

    def _read_printed(self, seen: RunSnapshot, skips: bool) -> Iterator[Told]:
        """Yield the points found in the output of each attempt in turn, or in another file."""
        chosen = self.reader.external
        if chosen is None or self._reports_itself(seen):
            return
        run = self._run if self._run and self._run.path in chosen.path.parents else None
        newest = seen.attempt if run else 1
        attempt, told = self.place["printed"]
        each = 1 if isinstance(self.reader, StoredReader) else RUNS_PER_ATTEMPT
        for number in range(newest if skips else max(1, attempt), newest + 1):
            path = run.attempt(number).output if run else chosen.path
            parts = len(self.reader.stored.parts) if isinstance(self.reader, StoredReader) else 1
            if self._printed is None or (self._printed.path, self._begun) != (path, parts):
                self._printed, self._begun = self._open_metrics(path, chosen.pattern), parts
                self._counted, self._known = 0, told if number == attempt else 0
            over = run is not None and (number < newest or not seen.state.active)
            for record in self._taken(self._printed, over):
                if self._counted > self._known and (point := _point(record)):
                    yield {**point, "attempt": number if run else 1 + point.get("attempt", 0) // each}
            self.place["printed"] = [number, max(self._counted, self._known)]

    def _open_metrics(self, path: Path, pattern: str | None) -> ExternalMetrics:
        clock = self._machine.clock
        stored = Path(self.reader.stored.key) if isinstance(self.reader, StoredReader) else path
        if stored is not path or path.is_dir():
            found = metrics_of(stored, clock, self._points)
            return found[0] if found else ExternalMetrics(path, clock, store=self._points)
        return ExternalMetrics(path, clock, pattern, store=self._points, file=self._followed(path))

    def _followed(self, path: Path, start: int = 0) -> FollowedFile:
        """Return a follower of the file; those of our runs are never renamed, so they need not be held open."""
        return HeldFile(path, start=start) if self._run is None else OwnFile(path, start=start)

    def _taken(self, printed: ExternalMetrics, over: bool) -> Iterator[Told]:
        """Yield the points added to a file, counting them in the order of the file; ``over``: it is complete."""
        while True:
            before = printed.file.offset, printed.file.restarts
            printed.poll()
            printed.read(Budget(GLANCE_SECONDS))
            if over:
                printed.finish()
            if printed.file.restarts != before[1]:
                self._counted = self._known = 0
            taken, self._points.taken = self._points.taken, []
            for record in taken:
                self._counted += 1
                yield record
            if (printed.file.offset, printed.file.restarts) == before:
                return

    def _reports_itself(self, seen: RunSnapshot) -> bool:
        """True if its output only repeats, or may turn out to repeat, what the program reports by itself."""
        if self.reader.reports_all or self._run is None:
            return self.reader.reports_all
        begun = seen.attempt_started
        is_young = begun is not None and self._machine.clock() - begun < HOLD_SECONDS
        return self.reader.heartbeats.own is None and is_young and seen.state.active

    def _read_log(self, seen: RunSnapshot, skips: bool) -> Iterator[Told]:
        run = self._run
        attempt, offset = self.place["log"]
        newest = seen.attempt if run else 1
        for number in range(newest if skips else max(1, attempt), newest + 1):
            path = run.attempt(number).output if run else seen.output
            if path is None:
                return
            if self._output is None or self._output.path != path:
                start = end_of_lines(path) if skips else offset if number == attempt else 0
                self._output, self._torn = self._followed(path, start), b""
            while data := self._output.take(SLICE_BYTES):
                *lines, self._torn = (self._torn + data).split(b"\n")
                if len(self._torn) >= LONGEST_LINE_BYTES:
                    lines, self._torn = [*lines, self._torn], b""
                yield from ({"attempt": number, "text": _text(line)} for line in lines)
            if self._torn and (number < newest or (run and not seen.state.active)):
                yield {"attempt": number, "text": _text(self._torn)}
                self._torn = b""
            self.place["log"] = [number, max(0, self._output.offset - len(self._torn))]


class Streams:
    """Streams several runs, or all runs of a home including future ones."""

    def __init__(
        self,
        home: Home,
        names: Sequence[str],
        *,
        log: bool = False,
        places: Mapping[str, Any] | None = None,
        only_new: bool = False,
    ) -> None:
        """
        Args:
            names: runs, logs and folders; if empty, every run of ours.
            places: a value of :attr:`places`; a run that is not in it starts at its beginning.
            only_new: of runs that exist now, report only what is added.

        Raises:
            UsageError: a name matches no run, or several.
        """
        self._home, self._names, self._log, self._only_new = home, names, log, only_new
        self._machine = machine_here(home.state)
        self._places = dict(places or {})
        self._streams: dict[str, RunStream] = {}
        self._next: dict[str, float] = {}
        self._watching = Watching(self._machine, None, home.state)
        for name in names:
            path = Path(name).expanduser()
            if is_path(name) and path.exists():
                for key in self._watching.watch(path):
                    self._open(key, self._watching[key])
            else:
                self._open_ours(find_run(home, name))

    @property
    def have_settled(self) -> bool:
        """True if everything that was named has ended and been reported completely."""
        return bool(self._names) and all(one.has_settled for one in self._streams.values())

    @property
    def places(self) -> Mapping[str, Any]:
        """How much was reported so far, as JSON, for another process to continue from."""
        return {**self._places, **{name: one.place for name, one in self._streams.items()}}

    def read(self) -> Iterator[Iterator[Told]]:
        """Yield what has happened since the last call, per run, oldest first; :attr:`places` is valid in between."""
        for run in () if self._names else reversed(run_dirs(self._home.runs)):
            if run.run not in self._streams:
                self._open_ours(run)
        self._only_new = self._only_new and bool(self._names)
        if self._watching.grows:
            self._look()
        now = self._machine.monotonic()
        for name, one in list(self._streams.items()):
            if self._next.get(name, 0.0) <= now:
                yield one.read()
                self._next[name] = now + SETTLED_SECONDS if one.has_settled else 0.0

    def _look(self) -> None:
        """Add runs that have begun in the watched folders."""
        before = set(self._watching)
        self._watching.look(())
        for key in before - self._watching.keys():
            self._streams.pop(key, None)
        for key in self._watching.keys() - before:
            self._open(key, self._watching[key], only_new=False)

    def _open_ours(self, run: RunDir) -> None:
        self._open(run.run, RunReader(run, self._machine))

    def _open(self, key: str, reader: RunFollower, *, only_new: bool = True) -> None:
        place = self._places.get(key)
        skips = only_new and self._only_new and place is None
        self._streams[key] = RunStream(reader, self._machine, log=self._log, place=place, only_new=skips)


def _point(record: Mapping[str, Any]) -> Told | None:
    """Convert a record of ``metrics.jsonl`` or of the output; None if it contains no metric."""
    values = {
        name: value
        for name, value in record.items()
        if name not in NOT_METRICS and (value is None or (isinstance(value, int | float) and value is not True))
    }
    if not values:
        return None
    lost = [name for name, value in values.items() if value is None or not math.isfinite(value)]
    values |= dict.fromkeys(lost)
    where = {name: heartbeat.number(record.get(name)) for name in _PLACES}
    whole = {name: int(at) if at is not None and at % 1 == 0 else at for name, at in where.items()}
    told: Told = {"time": heartbeat.number(record.get("time")), **whole, "values": values}
    told |= {"nonfinite": lost} if lost else {}
    return told | ({"attempt": record["attempt"]} if isinstance(record.get("attempt"), int) else {})


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
