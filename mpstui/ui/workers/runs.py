"""What every worker is, and the one that reads the runs and the log in view."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...core.model.errors import SettingsError
from ...core.present import settled
from ...wire.storage import is_settled
from ..alarms import alarms
from ..messages import LogGrew, SettingsMistaken, SnapshotsReady, TerminalNotified, Toast
from ..rows import clean

if TYPE_CHECKING:
    from textual.message import Message

    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.monitor import Monitor
    from ..services import Services

Post = Callable[["Message"], object]

RETRY_SECONDS = 1.0
_POLL_SECONDS, _QUIET_POLL_SECONDS, _RESTING_POLL_SECONDS, _HINTED_SECONDS = 0.2, 0.5, 2.0, 0.1
"""Between two readings; longer where nothing changes or all has ended, shorter after a hint."""
_QUIET_SECONDS = 2.0
"""Where nothing has changed for so long, files are looked at less often."""
_READING_SHARE, _LONGEST_PAUSE_SECONDS = 0.05, 1.0
"""Reading takes this share of a core at most, four times as much after hints; many runs are then read less often. The
end of a training is on the screen within two seconds all the same."""
_UNREAD_SHARE, _BEHIND_SHARE = 0.5, 0.2
"""While there are runs of which nothing was read, or whose history is read for the first time: what is read is kept."""
_TICK_SECONDS, _GROWING_TICK_SECONDS, _QUIET_TICK_SECONDS = 0.025, 0.01, 0.25
"""Between two looks at the size of the log in view: half of it is what a new line waits. A look at nothing costs
little, but being woken for it does, ten times as much as the look."""
_SLICE_SECONDS, _BREATH_SECONDS = 0.015, 0.001
"""The history of the run in focus is read in slices as short as this; keys and frames come between them."""
_TOLERATED_BYTES = 64 << 20
"""A log that floods in is read at the pace of the snapshots until so much of it is pending."""
_KEYS_FIRST_SECONDS = 0.15
"""Before the close look at what the first frame of the list has selected, whose readers take 30 ms to import."""
_PASSING_SECONDS = 0.1
"""A run of the list is looked at closely once it has been selected for so long. Whoever passes over it waits for no
reading of it: 8 ms of the processor a key, which took 15.
"""
_RESPAWN_SECONDS = 5.0
"""Between two looks for queued runs whose supervisor has died."""
_FLOOD_BYTES = 4096
"""Growth between two looks from which on a log is drawn four times a second, not at once."""
_FLOOD_SECONDS = 1.0
"""After its last big step a flood is held to be over."""
_LIVELY_SECONDS = 2.0
"""A log that has not grown for so long is not about to."""
_BYTES_A_SECOND, _BYTES_A_SECOND_REMOTE = 1500, 700
"""Bytes a second that frames may write which no key asked for: large ones come less often."""
_LONGEST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS_REMOTE = 1.0, 1.5


class Worker:
    """A daemon thread that works until it is stopped, and reports when its work fails."""

    name = "worker"

    def __init__(self, post: Post) -> None:
        self._post = post
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mpstui-{self.name}", daemon=True)
        self._trouble = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End soon; waits a moment, not for a read that hangs."""
        self._stopped.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def wake(self) -> None:
        """Begin the next round now. May be called from any thread."""
        self._woken.set()

    def _run(self) -> None:
        pause: float | None = 0.0
        while True:
            self._woken.wait(pause)
            self._woken.clear()
            if self._stopped.is_set():
                return
            try:
                pause = self._work()
                self._trouble = ""
            except Exception as error:  # noqa: BLE001 - a worker must survive whatever it reads, and must not be silent
                pause = RETRY_SECONDS
                trouble = clean(f"{type(error).__name__}: {error}", 300)
                if trouble != self._trouble:
                    self._trouble = trouble
                    self._post(Toast(f"reading {self.name} failed, trying again: {trouble}", "error"))

    def _work(self) -> float | None:
        """One round; the seconds until the next, None: when it is woken."""
        raise NotImplementedError


class Focus(NamedTuple):
    """What the screen in view wants read closely."""

    run: str | None = None
    """The run that is read in full."""
    output: Path | None = None
    """Its output, whose end is followed."""
    live: bool = True
    """Whether the output may grow at any moment."""
    listed: tuple[str, ...] = ()
    """Further runs that keys may act on."""
    sampled: RunSnapshot | None = None
    """The run whose processes, and the machine with them, are sampled."""
    machine_in_view: bool = False
    """Whether the panel with the machine has a place."""
    compared: tuple[str, ...] = ()
    """Runs whose curves are read whole, beside each other."""

    @property
    def closely(self) -> tuple[str, ...]:
        """All that are read in full."""
        return self.compared if self.run is None else (self.run, *self.compared)


class Pace:
    """Spaces frames out by what they write to the terminal."""

    def __init__(self, written: Callable[[], int], *, slow: bool) -> None:
        """``written``: all bytes until now. ``slow``: over SSH."""
        self._written = written
        self._rate = _BYTES_A_SECOND_REMOTE if slow else _BYTES_A_SECOND
        self._longest = _LONGEST_WAIT_SECONDS_REMOTE if slow else _LONGEST_WAIT_SECONDS
        self._before = 0
        self._late = False
        """Nothing had been written of the last frame when it was said to be drawn: it counts with the next one."""
        self.next = 0.0
        """The monotonic time of the next frame at the earliest."""

    def begin(self) -> None:
        """A frame is about to be drawn."""
        self._before = self._before if self._late else self._written()

    def drawn(self) -> None:
        """It is drawn. May come from any thread."""
        size, self._before = self._written() - self._before, self._written()
        self._late = size == 0
        self.next = max(self.next, time.monotonic() + min(self._longest, size / self._rate))


class RunWorker(Worker):
    """Reads the runs five times a second, and posts them when they differ: four times a second, over SSH once.

    Less often where a frame is large. It posts nothing while the last snapshots are not drawn, so a slow terminal
    never piles up messages.
    """

    name = "runs"

    def __init__(self, services: Services, post: Post, written: Callable[[], int] = lambda: 0) -> None:
        """``written``: all bytes that the screen has written until now."""
        super().__init__(post)
        self._services = services
        self._pace = Pace(written, slow=services.remote)
        self._draw_seconds = 1.0 if services.remote else 0.25
        self._log = LogWatch(services.stamp, slow=services.remote)
        self._paused = PausedQueues(services)
        self._monitor: Monitor | None = None
        self._focus = Focus()
        self._hinted: frozenset[str] = frozenset()
        self._read: tuple[tuple[RunSnapshot, ...], tuple[str, ...], tuple[str, ...]] | None = None
        """The newest snapshots, the queues that are paused, and what is wrong with the ways to other machines."""
        self._undrawn = False
        self._drawn = threading.Event()
        self._drawn.set()
        self.has_read = threading.Event()
        """Snapshots were posted once."""
        self._next_read = self._soonest_read = self._next_draw = 0.0
        self._keys_first_until = 0.0
        self._changed_at = -math.inf
        self._pending_bytes = 0
        self._catching_up = False
        self._unread = False
        """There are runs of which nothing was read yet."""
        self._respawn_at = time.monotonic() + _RESPAWN_SECONDS

    def focus_on(self, focus: Focus) -> None:
        """Read something else closely; another run is read at once."""
        if focus.closely != self._focus.closely:
            self._next_read = self._next_draw = self._pace.next = 0.0
            if focus.listed and not focus.compared:
                self._keys_first_until = max(self._keys_first_until, time.monotonic() + _PASSING_SECONDS)
        self._focus = focus
        self.wake()

    def hint(self, runs: frozenset[str]) -> None:
        """Something happened to these runs: read them soon. May come from any thread; a lost one costs a poll."""
        self._hinted |= runs
        self.wake()

    def drawn(self) -> None:
        """The last snapshots are on the screen."""
        self._pace.drawn()
        self._drawn.set()
        self.wake()

    def log_drawn(self) -> None:
        """The log's newest lines are on the screen."""
        self._pace.drawn()
        self._log.drawn()

    def _work(self) -> float:
        if self._monitor is None:
            self._monitor = self._services.monitor()
        now, focus = time.monotonic(), self._focus
        if now >= self._pace.next and self._log.grew(focus.output, now) and focus.run is not None:
            self._changed_at = now
            self._pace.begin()
            self._post(LogGrew(focus.run))
        if now >= self._due():
            self._refresh(self._monitor, focus)
        if (
            self._undrawn
            and now >= max(self._next_draw, self._pace.next)
            and self._drawn.is_set()
            and self._read is not None
        ):
            self._drawn.clear()
            self._pace.begin()
            self._undrawn, self._next_draw = False, now + self._draw_seconds
            self._post(SnapshotsReady(*self._read))
            self.has_read.set()
        if self._catch_up(self._monitor, focus, now):
            return _BREATH_SECONDS
        if now >= self._respawn_at:
            self._respawn_at = now + _RESPAWN_SECONDS
            self._services.recovery.respawn_missing()
        return self._pause(focus, now)

    def _due(self) -> float:
        return max(self._keys_first_until, self._soonest_read if self._hinted else self._next_read)

    def _refresh(self, monitor: Monitor, focus: Focus) -> None:
        began, worked = time.monotonic(), time.thread_time()
        hinted, self._hinted = self._hinted, frozenset()
        monitor.hint(hinted)
        snapshots = monitor.refresh(focus.run, focus.listed, focus.compared)
        fresh = snapshots, self._paused.read(), self._services.troubles
        while self._services.notices:
            self._post(Toast(clean(self._services.notices.popleft(), 300), "warning"))
        self._pending_bytes = sum(monitor.read_on(run, 0.0) for run in focus.closely)
        before, self._read = self._read, fresh
        if before is None or before[1:] != fresh[1:] or differ(before[0], fresh[0]):
            self._undrawn, self._changed_at = True, began
            self._sound(before[0] if before is not None else (), fresh[0], focus.run)
        took = time.thread_time() - worked  # on a busy machine the clock says how long others took
        self._unread = any(one.unread for one in fresh[0])
        if before is None and not (self._unread or focus.closely):
            self._keys_first_until = time.monotonic() + _KEYS_FIRST_SECONDS
        share = _UNREAD_SHARE if self._unread else _BEHIND_SHARE if monitor.is_behind else _READING_SHARE
        rest = min(took / share, _LONGEST_PAUSE_SECONDS)
        quiet = _QUIET_POLL_SECONDS if any(one.state.active for one in fresh[0]) else _RESTING_POLL_SECONDS
        least = _HINTED_SECONDS if self._unread else quiet if self._quiet(began) else _POLL_SECONDS
        self._next_read = began + max(least, rest)
        self._soonest_read = began + max(_HINTED_SECONDS, rest / 4)

    def _sound(self, before: Sequence[RunSnapshot], after: Sequence[RunSnapshot], in_view: str | None) -> None:
        """Notify the terminal of a crash, a stall or a finish; of a run that is not in view, also show a toast."""
        known = {one.run: (one.state, one.health) for one in before}
        turned = [one for one in after if known.get(one.run) != (one.state, one.health)]
        found = alarms(before, turned) if turned else []
        if found:
            try:
                self._post(TerminalNotified(self._services.notification(found)))
                for one in self._services.heard(found):
                    if one.run != in_view:
                        self._post(Toast(one.words, "information" if one.event == "finish" else "warning", one.run))
            except SettingsError as error:
                self._post(SettingsMistaken(error.mistakes))

    def _catch_up(self, monitor: Monitor, focus: Focus, now: float) -> bool:
        """Read a slice of what is pending of the run in focus; True when there is more to be read at once."""
        hurry = self._catching_up or self._pending_bytes > _TOLERATED_BYTES or not self._log.floods(now)
        waits = self._unread and bool(focus.listed)  # the selected run's history lets the other rows go first
        self._catching_up = bool(focus.closely) and self._pending_bytes > 0 and hurry and not waits
        if self._catching_up:
            pending = [run for run in focus.closely if monitor.read_on(run, 0.0)]
            left = [monitor.read_on(run, _SLICE_SECONDS if run == pending[0] else 0.0) for run in pending]
            self._pending_bytes = sum(left)
        return self._catching_up

    def _pause(self, focus: Focus, now: float) -> float:
        """Seconds until there is something to do; whoever wants it sooner wakes this worker."""
        until = self._due()
        if self._undrawn and self._drawn.is_set():
            until = min(until, max(self._next_draw, self._pace.next))
        if focus.output is not None and focus.live:
            tick = _GROWING_TICK_SECONDS if self._log.grows(now) else _TICK_SECONDS
            until = min(until, max(self._pace.next, now + (_QUIET_TICK_SECONDS if self._quiet(now) else tick)))
        return max(0.0, until - time.monotonic())

    def _quiet(self, now: float) -> bool:
        return now - self._changed_at > _QUIET_SECONDS


def differ(before: Sequence[RunSnapshot], after: Sequence[RunSnapshot]) -> bool:
    """Whether the second ones show anything new; of the time between them counts what an age in words shows."""
    if len(before) != len(after):
        return True
    pairs = zip(before, after, strict=True)
    return any(old is not new and (old != new or _age(old) != _age(new)) for old, new in pairs)


def _age(snapshot: RunSnapshot) -> float | None:
    """How long it has been running, as closely as the screen tells it: one that prints nothing grows older too."""
    if snapshot.started is None or not snapshot.state.active:
        return None
    return settled(snapshot.seen - (snapshot.attempt_started or snapshot.started)) // 1


class LogWatch:
    """Notices that a file changed by asking for its size; FSEvents says nothing about a file that is kept open."""

    def __init__(self, stamp: Callable[[Path], tuple[int, ...] | None], *, slow: bool) -> None:
        """``stamp`` tells what changes when a log does, its size last; None: it is not there."""
        self._stamp = stamp
        self._path: Path | None = None
        self._slow = slow
        self._seen: tuple[int, ...] | None = None
        self._peeked: tuple[int, ...] | None = None
        self._next = 0.0
        self._quick, self._flood = (0.25, 1.0) if slow else (0.03, 0.25)
        self._flooded = self._grew_at = -math.inf
        self._drawn = threading.Event()
        self._drawn.set()

    def drawn(self) -> None:
        """The screen has drawn the growth it was last told of."""
        self._drawn.set()

    def floods(self, now: float) -> bool:
        """Whether the file has been growing fast until now."""
        return now - self._flooded < _FLOOD_SECONDS

    def grows(self, now: float) -> bool:
        """Whether the file has grown just now."""
        return now - self._grew_at < _LIVELY_SECONDS

    def grew(self, path: Path | None, now: float) -> bool:
        """Whether there is something new to draw and it is time: a trickle at once, a flood four times a second."""
        if path != self._path:
            self._path, self._seen = path, None
        # A pause of the file ends a flood early; over SSH the drawing rate is what counts.
        ends_early = not self._slow and self.floods(now)
        if path is None or not self._drawn.is_set() or (now < self._next and not ends_early):
            return False
        state = self._stamp(path)
        if state is None:
            return False
        waits, self._peeked = now < self._next and state != self._peeked, state
        if state == self._seen or waits:
            return False  # a flood that has paused is drawn at once: nothing more may come
        grown = state[-1] - self._seen[-1] if self._seen else 0
        if grown:
            self._grew_at = now
        self._seen = state
        if grown > _FLOOD_BYTES:
            self._flooded = now
        self._next = now + (self._flood if grown > _FLOOD_BYTES else self._quick)
        self._drawn.clear()
        return True


class PausedQueues:
    """The queues that start nothing, looked up again once one of them was changed."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._seen: int | None = None
        self._known: tuple[str, ...] | None = None

    def read(self) -> tuple[str, ...]:
        changed = (self._services.queues_stamp() or (0,))[0]
        if self._known is None or changed != self._seen:
            self._seen = changed if is_settled(changed / 1e9, self._services.clock()) else None
            self._known = self._services.paused_queues()
        return self._known
