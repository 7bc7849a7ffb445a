"""The only threads of the screen: they read, compare and post messages; none of them knows a widget.

Each is driven by demand: it posts a picture and then waits until that was drawn, so a slow terminal slows the reading
and never piles up messages. Each reports its own trouble as a message and goes on.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import OperationError, UsageError
from .differences import differ
from .log_watch import LogWatch
from .looking import Wanted
from .messages import (
    DiagnosisReady,
    JobFailed,
    LogGrew,
    PumpFailed,
    RequestAnswered,
    RequestSent,
    SnapshotsReady,
    SystemReady,
)

if TYPE_CHECKING:
    from textual.message import Message

    from ..core.runs.snapshot import RunSnapshot
    from ..core.settings import EnergySettings
    from ..wire.records import Ack, Request
    from .ports import LogbookPort, SamplerPort
    from .services import Services

Post = Callable[["Message"], object]

_TICK_SECONDS = 0.025
_READ_SECONDS, _POLL_SECONDS, _QUIET_POLL_SECONDS = 0.1, 0.2, 0.5
_QUIET_AFTER_SECONDS = 3.0
"""Where nothing has changed for so long, looks are fewer."""
_READING_SHARE = 0.05
_HINTED_SHARE = 0.2
"""Pictures may take this share of one core at most, more after a hint; many runs are then read less often."""
_LONGEST_READ_SECONDS = 1.0
"""Whatever that costs: the end of a training is on the screen within two seconds, right after the first reading too."""
_SLICE_SECONDS, _BREATH_SECONDS = 0.015, 0.001
"""The history of the run in focus is read in slices as short as this; keys and frames come between them."""
_TOLERATED_BYTES = 64 << 20
"""A log that floods in is read at the pace of the pictures until so much of it is owed."""
_SAMPLE_SECONDS, _SAMPLE_SECONDS_REMOTE, _HIDDEN_SECONDS = 1.0, 2.0, 5.0
_NO_PROCESS_TIMES = 5
"""The machine alone is read so many times less often."""
_ANSWER_POLL_SECONDS = 0.1
_ANSWER_PATIENCE_SECONDS = 120.0
_RETRY_SECONDS = 1.0
_JOIN_SECONDS = 1.0


class _Pump:
    """A daemon thread that works until it is told to stop, and says so when its work fails."""

    name = "pump"

    def __init__(self, post: Post) -> None:
        self._post = post
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mpstui-{self.name}", daemon=True)
        self._trouble = ""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; waits a moment, not for a read that hangs."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            try:
                pause = self._work()
                self._trouble = ""
            except Exception as error:  # noqa: BLE001 - a pump must survive whatever it reads, and must not be silent
                pause = _RETRY_SECONDS
                self._report(error)

    def _work(self) -> float:
        """One round; the seconds until the next."""
        raise NotImplementedError

    def _report(self, error: Exception) -> None:
        sentence = f"{type(error).__name__}: {error}"
        if sentence != self._trouble:
            self._trouble = sentence
            self._post(PumpFailed(self.name, sentence))


class Focus(NamedTuple):
    """What is looked at closely: a run, and its output file where it has one."""

    run: str | None = None
    output: Path | None = None
    live: bool = True
    """Whether the output may grow at any moment."""


class RunPump(_Pump):
    """Reads the runs five times a second and posts a picture when it differs, at most at the drawing rate."""

    name = "runs"

    def __init__(self, services: Services, post: Post) -> None:
        super().__init__(post)
        self._monitor = services.monitor
        self._draw_seconds = 1.0 if services.remote else 0.25
        self._log = LogWatch(slow=services.remote)
        self._focus = Focus()
        self._last: tuple[RunSnapshot, ...] | None = None
        self._pending: tuple[RunSnapshot, ...] | None = None
        self._drawn = threading.Event()
        self._drawn.set()
        self._next_read = self._next_hinted = self._next_draw = 0.0
        self._hinted: frozenset[str] = frozenset()
        self._changed_at = -math.inf
        self._owed_bytes = 0
        self._catching_up = False

    def look_at(self, focus: Focus) -> None:
        """Look at another run; the next picture has it in full, at once."""
        if focus.run != self._focus.run:
            self._next_read = self._next_draw = 0.0
        self._focus = focus

    def hint(self, runs: frozenset[str]) -> None:
        """Something happened to these runs: look soon. May come from any thread; one that is lost costs a poll."""
        self._hinted |= runs

    def drawn(self) -> None:
        """The last picture is on the screen."""
        self._drawn.set()

    def log_drawn(self) -> None:
        """The log's newest lines are on the screen."""
        self._log.drawn()

    def _work(self) -> float:
        now = time.monotonic()
        focus = self._focus
        if self._log.grew(focus.output, now) and focus.run is not None:
            self._changed_at = now
            self._post(LogGrew(focus.run))
        if now >= (self._next_hinted if self._hinted else self._next_read):
            self._read(focus)
        if self._pending is not None and now >= self._next_draw and self._drawn.is_set():
            self._drawn.clear()
            pending, self._pending = self._pending, None
            self._next_draw = now + self._draw_seconds
            self._post(SnapshotsReady(pending))
        if self._catch_up(focus, now):
            return _BREATH_SECONDS
        watches = focus.output is not None and focus.live and not self._quiet(now)
        return _TICK_SECONDS if watches else _READ_SECONDS

    def _catch_up(self, focus: Focus, now: float) -> bool:
        """Read a slice of what the run in focus owes; True when there is more to be read at once."""
        hurry = self._catching_up or self._owed_bytes > _TOLERATED_BYTES or not self._log.floods(now)
        self._catching_up = focus.run is not None and self._owed_bytes > 0 and hurry
        if self._catching_up and focus.run is not None:
            self._owed_bytes = self._monitor.read_on(focus.run, _SLICE_SECONDS)
        return self._catching_up

    def _read(self, focus: Focus) -> None:
        began, worked = time.monotonic(), time.thread_time()
        hinted, self._hinted = self._hinted, frozenset()
        self._monitor.hint(hinted)
        fresh = self._monitor.refresh(focus.run)
        self._owed_bytes = self._monitor.read_on(focus.run, 0.0) if focus.run is not None else 0
        took = time.thread_time() - worked  # on a busy machine the clock says how long others took
        poll = _QUIET_POLL_SECONDS if self._quiet(began) else _POLL_SECONDS
        self._next_read = began + max(poll, _POLL_SECONDS, min(took / _READING_SHARE, _LONGEST_READ_SECONDS))
        self._next_hinted = began + max(_READ_SECONDS, took / _HINTED_SHARE)
        if self._last is None or differ(self._last, fresh):
            self._pending, self._changed_at = fresh, began
        self._last = fresh

    def _quiet(self, now: float) -> bool:
        return now - self._changed_at > _QUIET_AFTER_SECONDS


class HintPump(_Pump):
    """Watches the folder of runs for what is created or renamed; polling finds the same, a little later."""

    name = "watcher"

    def __init__(self, root: Path, hint: Callable[[frozenset[str]], None], post: Post) -> None:
        super().__init__(post)
        self._root, self._hint = root, hint

    def _work(self) -> float:
        from ..core.follow.watcher import RunsWatcher

        RunsWatcher(self._root, self._hint).run(self._stopped)
        return _RETRY_SECONDS


class SystemPump(_Pump):
    """Samples the machine while somebody looks at a run, less often while the panel that shows it is hidden."""

    name = "system"

    def __init__(self, services: Services, post: Post) -> None:
        super().__init__(post)
        self._services = services
        self._sampler: SamplerPort | None = None
        self._wanted: Wanted | None = None
        self._awake = threading.Event()
        self._sampled: tuple[Wanted, float] | None = None
        self._book: tuple[str, LogbookPort] | None = None
        self._prices: EnergySettings | None = None

    def want(self, snapshot: RunSnapshot | None, *, in_view: bool = True) -> None:
        """Sample for this run from now on; None: nobody looks."""
        self._wanted = Wanted(snapshot, in_view) if snapshot is not None else None
        (self._awake.set if snapshot is not None else self._awake.clear)()

    def follow(self, snapshots: Sequence[RunSnapshot]) -> None:
        """Newer pictures; that of the wanted run is kept, for what the trainer itself reports."""
        wanted = self._wanted
        newer = next((one for one in snapshots if wanted and one.run == wanted.snapshot.run), None)
        if wanted is not None and newer is not None:
            self._wanted = wanted._replace(snapshot=newer)

    def stop(self) -> None:
        """End, and what the sampler started too."""
        self._awake.set()
        super().stop()
        if not self._thread.is_alive():
            self._close_book()
            if self._sampler is not None:
                self._sampler.close()

    def _work(self) -> float:
        wanted = self._wanted
        if wanted is None:
            self._close_book()
            self._awake.wait()
            return 0.0
        if self._sampled is not None and not self._due(wanted, *self._sampled):
            return _READ_SECONDS
        self._sampled = wanted, time.monotonic()
        self._sample(wanted.snapshot)
        return _READ_SECONDS

    def _due(self, wanted: Wanted, before: Wanted, sampled_at: float) -> bool:
        if wanted.subject != before.subject:
            return True
        pause = (
            (_SAMPLE_SECONDS_REMOTE if self._services.remote else _SAMPLE_SECONDS)
            if wanted.in_view
            else _HIDDEN_SECONDS
        )
        return time.monotonic() - sampled_at >= pause * (1 if wanted.snapshot.pid is not None else _NO_PROCESS_TIMES)

    def _sample(self, snapshot: RunSnapshot) -> None:
        self._sampler = self._sampler or self._services.sampler()
        run = snapshot.run
        sample = self._sampler.sample({run: (snapshot.pid,)} if snapshot.pid is not None else {})
        tree = sample.trees.get(run)
        outlook = self._open_book(snapshot).look(snapshot, sample.system, tree)
        self._post(SystemReady(sample.system, tree, run, outlook, self._prices))

    def _open_book(self, snapshot: RunSnapshot) -> LogbookPort:
        if self._book is None or self._book[0] != snapshot.run:
            self._close_book()
            self._book = snapshot.run, self._services.logbook(snapshot)
            self._ask_prices()
        return self._book[1]

    def _ask_prices(self) -> None:
        try:
            self._prices = self._services.prices()
        except UsageError as error:
            self._post(PumpFailed("settings", error.sentence))

    def _close_book(self) -> None:
        if self._book is not None:
            self._book[1].close()
            self._book = None


class _Awaited(NamedTuple):
    """A request whose answer is still to come."""

    run: str
    label: str
    folder: Path
    request: Request
    until: float


class Courier(_Pump):
    """Carries out what a person asked for, one thing after another, and waits for the answers of others."""

    name = "requests"

    def __init__(self, services: Services, post: Post, patience_seconds: float = _ANSWER_PATIENCE_SECONDS) -> None:
        super().__init__(post)
        self._actions = services.actions
        self._services = services
        self._patience_seconds = patience_seconds
        self._jobs: queue.SimpleQueue[tuple[str, Callable[[], object]]] = queue.SimpleQueue()
        self._awaited: list[_Awaited] = []

    def ask(self, snapshot: RunSnapshot, label: str, write: Callable[[], Request]) -> None:
        """Write a request, say so, and report its answer when there is one."""

        def job() -> None:
            request = write()
            until = time.monotonic() + self._patience_seconds
            self._awaited.append(_Awaited(snapshot.run, label, snapshot.dir, request, until))
            self._post(RequestSent(snapshot.run, label, request))

        self._jobs.put((label, job))

    def explain(self, snapshot: RunSnapshot) -> None:
        """Find out why an attempt ended."""

        def job() -> None:
            findings = tuple(self._services.diagnose(snapshot))
            exception = None if findings else self._services.last_exception(snapshot)
            self._post(DiagnosisReady(snapshot.run, snapshot.attempt, findings, exception))

        self._jobs.put(("diagnosis", job))

    def do(self, what: str, work: Callable[[], Message]) -> None:
        """Do something that takes a while and post what came of it."""
        self._jobs.put((what, lambda: self._post(work())))

    def stop(self) -> None:
        """End; what was asked for and not yet written is dropped."""
        self._stopped.set()
        self._jobs.put(("nothing", lambda: None))
        super().stop()

    def _work(self) -> float:
        try:
            what, job = self._jobs.get(timeout=_ANSWER_POLL_SECONDS if self._awaited else _RETRY_SECONDS / 2)
        except queue.Empty:
            pass
        else:
            self._carry_out(what, job)
        self._collect()
        return 0.0

    def _carry_out(self, what: str, job: Callable[[], object]) -> None:
        try:
            job()
        except (UsageError, OperationError) as error:
            self._post(JobFailed(what, error.sentence, error.hint, getattr(error, "key", None)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the person who asked is told
            self._post(JobFailed(what, f"{type(error).__name__}: {error}"))

    def _collect(self) -> None:
        for awaited in tuple(self._awaited):
            ack: Ack | None = self._actions.answer(awaited.folder, awaited.request.id)
            if ack is None and time.monotonic() < awaited.until:
                continue
            self._awaited.remove(awaited)
            self._post(RequestAnswered(awaited.run, awaited.label, awaited.request, ack))


class TerminalWatch(_Pump):
    """Ends the program when its terminal is gone, or when it was told to end and cannot.

    Textual's reader spins on a terminal that hung up, and its writer blocks for ever on one that stopped reading; with
    SIGHUP ignored (nohup) nothing else would end either.
    """

    name = "terminal"

    def __init__(
        self, post: Post, gone: Callable[[], bool], overdue: Callable[[], bool], die: Callable[[], None]
    ) -> None:
        super().__init__(post)
        self._gone, self._overdue, self._die = gone, overdue, die

    def _work(self) -> float:
        if self._gone() or self._overdue():
            self._die()
        return _RETRY_SECONDS / 2
