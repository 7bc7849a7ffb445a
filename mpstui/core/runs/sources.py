"""Where a run's numbers come from: its heartbeat and metrics, then files its profile names, then its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...wire.rundir import AttemptDir, RunDir
from ..follow.budget import Budget
from ..series.progress import Progress
from .beats import BeatFile, Silence
from .foreign import ForeignPoints
from .numbers import Numbers, combine
from .points import PointReader
from .snapshot import SeriesView
from .witness import Machine, WitnessReader

PROGRESS_RECORDS = 240
LIST_NAMES = frozenset({"loss"})


class Sources:
    """The files of one run that hold numbers, followed through its attempts."""

    def __init__(self, run: RunDir, machine: Machine) -> None:
        self.run = run
        self.machine = machine
        self.progress = Progress()
        self.beat: BeatFile | None = None
        self.points = PointReader(run.metrics)
        self.foreign: ForeignPoints | None = None
        self._attempt = 0
        self._output: Path | None = None
        self._older: BeatFile | None = None
        self._watched_beat: BeatFile | None = None
        self._output_changed: float | None = None
        self._by_epoch = False
        self._ended = False
        self._owed = False
        self._known = False
        self._launched = 0.0
        self._pattern: str | None = None
        self._beaten: list[tuple[float, float, float]] = []

    def follow_attempt(self, attempt: int, folder: AttemptDir) -> None:
        """Turn to the files of the newest attempt (0: there is none yet) and read its heartbeat."""
        if attempt != self._attempt:
            self._older = self.beat if self.beat and self.beat.beat else self._last_beat_before(attempt)
            self._attempt = attempt
            self._output = folder.output
            self.beat = BeatFile(folder.heartbeat(), self.machine)
            self.progress.cut()
            self._beaten.clear()
        if self.beat is not None:
            self._take_beat(self.beat)

    def follow(self, witnesses: WitnessReader) -> None:
        """Turn to the files that the profile names."""
        spec, launch = witnesses.spec.value, witnesses.launch.value
        self._pattern = spec.watch.get("pattern") if spec else None
        self._ended = witnesses.exit.value is not None
        self._launched = launch.time if launch else 0.0
        if spec is None or not spec.watch:
            return
        folder = Path(spec.launch.cwd)
        self._watch(spec.watch, folder)

    def own_phase(self) -> str | None:
        """The phase in the attempt's newest heartbeat of our schema; None when it wrote none."""
        beat = self.beat.beat if self.beat and self.beat.ours else None
        return beat.phase if beat else None

    def read(self, *, full: bool, budget: Budget) -> None:
        """Take in what was added since the last look.

        Of a run that has ended, the list shows its records first and its numbers when there is time.
        """
        self._stat_output()
        self._owed = self._ended and not full and budget.spent and not self._known
        if self._owed:
            return
        self._known = True
        if full or not self._ended:
            self._feed(self.points.read_newest())
        for moment, step, slept in self._beaten:
            self._advance(moment, step, slept)
        self._beaten.clear()
        if full:
            self.points.sketch()
            self.points.read_history(budget)
        else:
            self.points.sketch(LIST_NAMES)
        if self._needs_foreign():
            self._read_foreign(budget)

    @property
    def complete(self) -> bool:
        """Whether the curves hold every point."""
        return self.foreign.complete if self.foreign else self.points.complete

    @property
    def caught_up(self) -> bool:
        """Whether the numbers of the list have been read."""
        return not self._owed and (self.foreign is None or self.foreign.complete)

    def exhausted(self, full: bool) -> bool:
        """Whether, in a run that has ended, there is nothing more to read for this view."""
        return self.complete if full else self.caught_up

    def drop_history(self) -> None:
        """Give back what only the full view needs."""
        self.points.drop_history()

    def numbers(self) -> Numbers:
        """The newest numbers."""
        shown = self._shown_beat()
        older = self._older.beat if self._older else None
        beat = shown.beat if shown else None
        values: Mapping[str, Any] = self.points.newest
        if self.foreign is not None and not values:
            values = self.foreign.newest
        return combine(beat, older, values)

    def views(self, names: Sequence[str] | None = None, **options: Any) -> dict[str, SeriesView]:
        """Curves by metric name."""
        found = self.points.views(names, **options)
        return found if found or self.foreign is None else self.foreign.views(names, **options)

    def silence(self) -> Silence | None:
        """How old the newest heartbeat is."""
        shown = self._shown_beat()
        return shown.silence() if shown else None

    def shown_beat_file(self) -> BeatFile | None:
        """The heartbeat file that is relied upon, when it has been read."""
        return self._shown_beat()

    def output_path(self) -> Path | None:
        """The newest attempt's output, when it exists."""
        return self._output if self._output_changed is not None else None

    @property
    def output_changed(self) -> float | None:
        """When this attempt's output or metrics last grew, Unix seconds; None: it has written nothing."""
        return max((moment for moment in self._moments() if moment >= self._launched), default=None)

    @property
    def has_steps(self) -> bool:
        """Whether this attempt has told of a step, an epoch or a loss."""
        beat = self.beat.beat if self.beat else None
        if self.progress.step is not None or (beat is not None and (bool(beat.step) or beat.loss is not None)):
            return True
        watched = self._shown_beat()
        return bool(self.foreign and self.foreign.newest) or (watched is not None and not watched.ours)

    def updated(self) -> float | None:
        """The run's last sign of life."""
        shown = self._shown_beat()
        beat = (shown.beat.time,) if shown and shown.beat else ()
        return max((*beat, *self._moments()), default=None)

    def _moments(self) -> list[float]:
        """When what it prints was last written."""
        files = (self._output_changed, self.points.changed_at, self.foreign.changed_at if self.foreign else None)
        return [moment for moment in files if moment is not None]

    def readers(self) -> str | None:
        """The name of the file that the numbers come from."""
        shown = self._shown_beat()
        if shown is not None and shown.beat is not None:
            return "heartbeat" if shown.ours else shown.path.name
        if self.points.newest:
            return self.run.metrics.name
        return self.foreign.source if self.foreign and self.foreign.newest else None

    def remaining_seconds(self, numbers: Numbers) -> float | None:
        """Until the whole run is done; None until known."""
        if self._by_epoch:
            return self.progress.remaining_seconds(numbers.epochs)
        return self.progress.remaining_seconds(_planned_steps(numbers))

    def epoch_remaining_seconds(self, numbers: Numbers) -> float | None:
        """Until the epoch being trained is done; None until known."""
        if self._by_epoch or numbers.step is None or numbers.epoch_step is None or numbers.epoch_steps is None:
            return None
        return self.progress.remaining_seconds(numbers.step + numbers.epoch_steps - numbers.epoch_step)

    def _shown_beat(self) -> BeatFile | None:
        if self.beat is not None and self.beat.beat is not None:
            return self.beat
        watched = self._watched_beat
        if watched is None or watched.beat is None or watched.beat.time < self._launched:
            return None  # left behind by an earlier training
        return watched

    def _take_beat(self, file: BeatFile) -> None:
        """Note a new heartbeat; its step counts after those of the metrics, which are older when we have just come."""
        slept = file.read()
        if slept is not None and file.beat is not None and file.beat.step is not None:
            self._beaten.append((file.beat.time, float(file.beat.step), slept))

    def _watch(self, watch: Mapping[str, str], folder: Path) -> None:
        named = watch.get("heartbeat")
        if named:
            file = _inside(folder, named)
            if self._watched_beat is None or self._watched_beat.path != file:
                self._watched_beat = BeatFile(file, self.machine)
            self._take_beat(self._watched_beat)
        other = watch.get("metrics") or watch.get("log")
        path = _inside(folder, other) if other else None
        if path is not None and (self.foreign is None or self.foreign.path != path):
            self.foreign = ForeignPoints(path, self.machine.clock, watch.get("pattern"))

    def _needs_foreign(self) -> bool:
        """Whether nothing of ours tells numbers, so that the output must."""
        if self.foreign is not None:
            return True
        if self.points.newest or self._output is None or self._output_changed is None:
            return False
        shown = self._shown_beat()
        if shown is not None and shown.beat is not None and shown.beat.loss is not None:
            return False
        self.foreign = ForeignPoints(self._output, self.machine.clock, self._pattern)
        return True

    def _read_foreign(self, budget: Budget) -> None:
        assert self.foreign is not None
        if self._output is not None and self.foreign.path != self._output and self._is_own(self.foreign.path):
            self.foreign = ForeignPoints(self._output, self.machine.clock, self._pattern)
        if self.foreign.look() and not budget.spent:
            self._feed(self.foreign.read(budget))

    def _is_own(self, path: Path) -> bool:
        return self.run.path in path.parents

    def _feed(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Progress from points of the newest attempt."""
        for record in records[-PROGRESS_RECORDS:]:
            moment, step = record.get("time"), record.get("step")
            if record.get("attempt", self._attempt) not in (self._attempt, 0) and self.foreign is None:
                continue
            if not isinstance(moment, (int, float)):
                continue
            if isinstance(step, (int, float)):
                self._advance(float(moment), float(step), 0.0)
            elif isinstance(record.get("epoch"), (int, float)) and not self._has_steps():
                self._by_epoch = True
                self.progress.add(float(moment), float(record["epoch"]))

    def _has_steps(self) -> bool:
        return self.progress.step is not None and not self._by_epoch

    def _advance(self, moment: float, step: float, slept: float) -> None:
        if self._by_epoch:
            self.progress.cut()
            self._by_epoch = False
        self.progress.add(moment, step, idle_seconds=slept)

    def _stat_output(self) -> None:
        try:
            self._output_changed = self._output.stat().st_mtime if self._output else None
        except OSError:
            self._output_changed = None

    def _last_beat_before(self, attempt: int) -> BeatFile | None:
        """Where the run stood when this attempt began."""
        for number in range(attempt - 1, max(0, attempt - 4), -1):
            file = BeatFile(self.run.attempt(number).heartbeat(), self.machine)
            file.read()
            if file.beat is not None:
                return file
        return None


def _inside(folder: Path, name: str) -> Path:
    """A file that a profile names, relative to the folder its program runs in."""
    try:
        return folder / Path(name).expanduser()
    except RuntimeError:
        return folder / name  # the home of a user that this machine does not know


def _planned_steps(numbers: Numbers) -> float | None:
    if numbers.steps is not None:
        return float(numbers.steps)
    if numbers.epochs is not None and numbers.epoch_steps is not None:
        return numbers.epochs * numbers.epoch_steps
    return None
