"""What mpstui did not start: a log, a metric file, a heartbeat, or a folder that holds such files."""

from __future__ import annotations

from pathlib import Path

from ..follow.file import Budget
from ..model.snapshot import RunSnapshot, State
from .beats import BeatFile
from .external import ExternalMetrics
from .health import Signs, assess, duration
from .log_end import LogEnd
from .numbers import combine
from .pace import Pace
from .run_reader import FULL_COLUMNS, STANDING
from .witness import Machine

HEARTBEAT_NAMES = ("heartbeat.json", "*heartbeat*.json", "trainer_state.json", "status.json")
METRIC_NAMES = ("metrics.jsonl", "*.jsonl", "*.csv")
LOG_NAMES = ("output.log", "*.log", "*.out", "*.txt")
LOOK_AGAIN_SECONDS = 2.0
LAST_WORDS_SECONDS = 10.0
"""A program that ends writes its last heartbeat and its traceback in either order, and about then."""


class WatchedReader:
    """Follows files by what they say; nothing proves whether their program still runs, so nothing is claimed of it."""

    def __init__(self, path: Path, machine: Machine) -> None:
        self.path = path
        self.machine = machine
        self.snapshot: RunSnapshot | None = None
        """The last picture that was made."""
        self.pace = Pace()
        self._beat: BeatFile | None = None
        self._points: ExternalMetrics | None = None
        self._log: Path | None = None
        self._log_end = LogEnd()
        self._looked: float | None = None
        self._was_there = False

    def refresh(self, *, full: bool, budget: Budget) -> RunSnapshot:
        """A picture of now."""
        self._look()
        slept = self._beat.read() if self._beat else None
        if slept is not None and self._beat and self._beat.beat and self._beat.beat.step is not None:
            self.pace.note_beat(self._beat.beat.time, self._beat.beat.step, slept)
        readable = self._points is not None and self._points.poll() and (full or not budget.spent)
        self.pace.feed(self._points.read(budget) if self._points and readable else (), None)
        self.snapshot = self._picture(full)
        return self.snapshot

    def read_on(self, budget: Budget) -> None:
        """Go on with the history, without making a picture of it."""
        if self._points is not None and self._points.poll():
            self.pace.feed(self._points.read(budget), None)

    @property
    def owed_bytes(self) -> int:
        """How much of its file is still to be read by this process."""
        return self._points.pending_bytes if self._points is not None else 0

    @property
    def settled(self) -> bool:
        """Nothing tells that a program which mpstui did not start has ended."""
        return False

    @property
    def caught_up(self) -> bool:
        """Whether all of its file has been read."""
        return self._points is None or self._points.complete

    def rest(self) -> None:
        """Its curves are kept: nobody else holds them."""

    def _look(self) -> None:
        """Find the files, again from time to time: a folder may fill up after we came."""
        now = self.machine.monotonic()
        if self._looked is not None and now - self._looked < LOOK_AGAIN_SECONDS:
            return
        self._looked = now
        folder = self.path.is_dir()
        beat = _newest(self.path, HEARTBEAT_NAMES) if folder else self.path if self.path.suffix == ".json" else None
        log = _newest(self.path, LOG_NAMES) if folder else None if beat else self.path
        points = (_newest(self.path, METRIC_NAMES) if folder else None) or log
        self._log = log
        if beat is not None and (self._beat is None or self._beat.path != beat):
            self._beat = BeatFile(beat, self.machine)
        if points is not None and (self._points is None or self._points.path != points):
            self._points = ExternalMetrics(points, self.machine.clock)

    def _picture(self, full: bool) -> RunSnapshot:
        beat = self._beat.beat if self._beat else None
        numbers = combine(beat, None, self._points.newest if self._points else {})
        updated = self._updated()
        known = {"loss", "lr"} if not full else None
        condition = assess(self._signs(numbers.step is not None or numbers.loss is not None))
        exception = self._exception(updated)
        moving = exception is None and condition.health not in STANDING
        return RunSnapshot(
            run=str(self.path),
            name=self.path.name,
            dir=self.path if self.path.is_dir() else self.path.parent,
            state=State.WATCHED,
            reason=self._reason(updated),
            seen=self.machine.clock(),
            health=condition.health if updated is not None else None,
            health_note=condition.note if updated is not None else "",
            numbers=self.pace.timed(numbers, moving=moving),
            updated=updated,
            series=self._points.views(list(known) if known else None, most=FULL_COLUMNS) if self._points else {},
            output=self._log,
            readers=self._readers(),
            loading=self._points is not None and self._points.behind,
            brief=not full,
            log_exception=exception,
            gone=self._is_gone(),
        )

    def _is_gone(self) -> bool:
        there = self.path.exists()
        self._was_there = self._was_there or there
        return self._was_there and not there

    def _exception(self, updated: float | None) -> str | None:
        """What the log ends with, unless a heartbeat or a metric file tells that it was survived."""
        written = _modified(self._log) if self._log is not None else None
        if self._log is None or written is None or updated is None or updated > written + LAST_WORDS_SECONDS:
            return None
        return self._log_end.exception(self._log)

    def _signs(self, steps_done: bool) -> Signs:
        beat, silence = (self._beat.beat, self._beat.silence()) if self._beat else (None, None)
        changed = self._points.file.changed_at if self._points else None
        return Signs(
            phase=beat.phase if beat else None,
            beat_age=silence.awake if silence else None,
            promise=beat.expect_next_in if beat else None,
            steps_done=steps_done,
            output_age=max(0.0, self.machine.clock() - changed) if changed is not None else None,
            slept_seconds=silence.slept if silence else 0.0,
        )

    def _updated(self) -> float | None:
        beat = self._beat.beat.time if self._beat and self._beat.beat else None
        changed = self._points.file.changed_at if self._points else None
        return max((moment for moment in (beat, changed) if moment is not None), default=None)

    def _reason(self, updated: float | None) -> str:
        if not self.path.exists():
            return f"there is no {self.path.name} (any more)"
        if self._points is not None and self._points.unreadable:
            return f"{self._points.path.name} cannot be read"
        if updated is None:
            return "nothing that could be read is there yet"
        return f"not started by mpstui; last written {_ago(self.machine.clock() - updated)} ago"

    def _readers(self) -> str | None:
        if self._beat is not None and self._beat.beat is not None:
            return self._beat.path.name
        return self._points.path.name if self._points else None


def _newest(folder: Path, patterns: tuple[str, ...]) -> Path | None:
    """The newest file of the first pattern that matches any, at most two folders deep."""
    for pattern in patterns:
        found = [*folder.glob(pattern), *folder.glob(f"*/{pattern}")][:200]
        dated = [(moment, path) for path in found if (moment := _modified(path)) is not None]
        if dated:
            return max(dated)[1]
    return None


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime if path.is_file() else None
    except OSError:
        return None


def _ago(seconds: float) -> str:
    """An age in whole minutes: a picture that differs every second is drawn every second, by an idle screen too."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 60 else duration(seconds)
