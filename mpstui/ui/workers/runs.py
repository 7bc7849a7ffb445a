"""The worker that reads the runs and the log in view."""

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
from .worker import Post, Worker

if TYPE_CHECKING:
    from ...core.model.snapshot import RunSnapshot
    from ...core.runs.monitor import Monitor
    from ..services import Services

_DRAW_SECONDS, _DRAW_SECONDS_REMOTE = 0.25, 1.0
"""Least seconds between two frames that no key asked for."""
_SLICE_SECONDS, _BREATH_SECONDS = 0.015, 0.001
"""The history of the run in focus is read in slices of this many seconds, with pauses for keys and frames between."""
_TOLERATED_BYTES = 64 << 20
"""A log that grows very fast is read only with each snapshot, unless more than this is pending."""
_RESPAWN_SECONDS = 5.0
"""Seconds between two checks for queued runs whose supervisor has died."""


class Focus(NamedTuple):
    """What the screen in view needs to have read closely."""

    run: str | None = None
    """The run to read in full."""
    output: Path | None = None
    """Its output, whose end is followed."""
    live: bool = True
    """True if the output may still grow."""
    listed: tuple[str, ...] = ()
    """Further runs that keys may act on."""
    sampled: RunSnapshot | None = None
    """The run whose processes are sampled, together with the machine."""
    machine_in_view: bool = False
    """True if the panel that shows the machine is in view."""
    compared: tuple[str, ...] = ()
    """Runs being compared, whose curves are read in full."""

    @property
    def closely(self) -> tuple[str, ...]:
        """All runs to read in full."""
        return self.compared if self.run is None else (self.run, *self.compared)


_BYTES_A_SECOND, _BYTES_A_SECOND_REMOTE = 1500, 700
"""Bytes per second that frames no key asked for may write; large ones come less often."""
_LONGEST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS_REMOTE = 1.0, 1.5


class Pace:
    """Spaces frames by how much they write to the terminal."""

    def __init__(self, written: Callable[[], int], *, slow: bool) -> None:
        """``written`` returns the number of bytes written so far; ``slow``: over SSH."""
        self._written = written
        self._rate = _BYTES_A_SECOND_REMOTE if slow else _BYTES_A_SECOND
        self._longest = _LONGEST_WAIT_SECONDS_REMOTE if slow else _LONGEST_WAIT_SECONDS
        self._before = 0
        self._late = False
        """True if the last frame was reported drawn before any of it was written: its bytes count with the next."""
        self.next = 0.0
        """The earliest monotonic time of the next frame."""

    def begin(self) -> None:
        """Note that a frame is about to be drawn."""
        self._before = self._before if self._late else self._written()

    def drawn(self) -> None:
        """Note that the frame is drawn. May be called from any thread."""
        size, self._before = self._written() - self._before, self._written()
        self._late = size == 0
        self.next = max(self.next, time.monotonic() + min(self._longest, size / self._rate))


_POLL_SECONDS, _QUIET_POLL_SECONDS, _RESTING_POLL_SECONDS, _HINTED_SECONDS = 0.2, 0.5, 2.0, 0.1
"""Seconds between two readings; longer if nothing changes or everything has ended, shorter after a hint."""
_QUIET_SECONDS = 2.0
"""Without a change for this many seconds, files are checked less often."""
_READING_SHARE, _LONGEST_PAUSE_SECONDS = 0.05, 1.0
"""Reading takes at most this share of a core, four times as much after hints: the more runs there are, the less often
they are read. The end of a training still appears within two seconds."""
_UNREAD_SHARE, _BEHIND_SHARE = 0.5, 0.2
"""The same while runs are unread, or a history is read for the first time: that work is done only once."""
_KEYS_FIRST_SECONDS = 0.15
"""Seconds before the initially selected run is read closely: its readers take 30 ms to import."""
_PASSING_SECONDS = 0.1
"""A run is read closely once it has been selected for this many seconds: passing over it does not wait for that, and
a key costs 8 ms of processor time instead of 15."""


class Schedule:
    """When to read the runs next. All times are monotonic."""

    def __init__(self) -> None:
        self._next = self._next_hinted = self._keys_first_until = 0.0
        self._changed_at = -math.inf

    def due(self, *, hinted: bool) -> float:
        """Return when to read next; earlier if ``hinted`` that something has happened."""
        return max(self._keys_first_until, self._next_hinted if hinted else self._next)

    def read_now(self) -> None:
        """Read without waiting for the next turn."""
        self._next = 0.0

    def let_keys_go_first(self, seconds: float) -> None:
        """Read nothing for this long."""
        self._keys_first_until = max(self._keys_first_until, time.monotonic() + seconds)

    def note_change(self, now: float) -> None:
        """Note that something shown has changed."""
        self._changed_at = now

    def is_quiet(self, now: float) -> bool:
        """True if nothing has changed for a while."""
        return now - self._changed_at > _QUIET_SECONDS

    def note_reading(self, began: float, took: float, *, unread: bool, behind: bool, active: bool) -> None:
        """Note that the runs were read, which ``took`` this many seconds of processor time.

        Args:
            unread: some runs have not been read yet.
            behind: the history of some is being read for the first time.
            active: not all runs have ended.
        """
        share = _UNREAD_SHARE if unread else _BEHIND_SHARE if behind else _READING_SHARE
        rest = min(took / share, _LONGEST_PAUSE_SECONDS)
        quiet = _QUIET_POLL_SECONDS if active else _RESTING_POLL_SECONDS
        least = _HINTED_SECONDS if unread else quiet if self.is_quiet(began) else _POLL_SECONDS
        self._next = began + max(least, rest)
        self._next_hinted = began + max(_HINTED_SECONDS, rest / 4)


class RunWorker(Worker):
    """Reads the runs five times a second and posts changed snapshots, at most four times a second, over SSH once.

    Less often if frames are large. Nothing is posted until the last snapshots are drawn, so that messages never pile up
    behind a slow terminal.
    """

    name = "runs"

    def __init__(self, services: Services, post: Post, written: Callable[[], int] = lambda: 0) -> None:
        """``written`` returns the number of bytes that the screen has written so far."""
        super().__init__(post)
        self._services = services
        self._pace = Pace(written, slow=services.remote)
        self._draw_seconds = _DRAW_SECONDS_REMOTE if services.remote else _DRAW_SECONDS
        self._schedule = Schedule()
        self._log = LogWatch(services.stamp, slow=services.remote)
        self._paused = PausedQueues(services)
        self._monitor: Monitor | None = None
        self._focus = Focus()
        self._hinted: frozenset[str] = frozenset()
        self._read: tuple[tuple[RunSnapshot, ...], tuple[str, ...], tuple[str, ...]] | None = None
        """The newest snapshots, the paused queues, and the problems with connections to other machines."""
        self._undrawn = False
        self._drawn = threading.Event()
        self._drawn.set()
        self.has_read = threading.Event()
        """Set once snapshots have been posted."""
        self._next_draw = 0.0
        self._pending_bytes = 0
        self._catching_up = False
        self._unread = False
        """True while some runs have not been read yet."""
        self._respawn_at = time.monotonic() + _RESPAWN_SECONDS

    def focus_on(self, focus: Focus) -> None:
        """Change what is read closely; at once if it is another run."""
        if focus.closely != self._focus.closely:
            self._schedule.read_now()
            self._next_draw = self._pace.next = 0.0
            if focus.listed and not focus.compared:
                self._schedule.let_keys_go_first(_PASSING_SECONDS)
        self._focus = focus
        self.wake()

    def hint(self, runs: frozenset[str]) -> None:
        """Read these runs soon, as something happened. Any thread may call this; a lost hint only costs a poll."""
        self._hinted |= runs
        self.wake()

    def drawn(self) -> None:
        """Note that the last snapshots are on the screen."""
        self._pace.drawn()
        self._drawn.set()
        self.wake()

    def log_drawn(self) -> None:
        """Note that the log's newest lines are on the screen."""
        self._pace.drawn()
        self._log.drawn()

    def _work(self) -> float:
        if self._monitor is None:
            self._monitor = self._services.monitor()
        now, focus = time.monotonic(), self._focus
        if now >= self._pace.next and self._log.grew(focus.output, now) and focus.run is not None:
            self._schedule.note_change(now)
            self._pace.begin()
            self._post(LogGrew(focus.run))
        if now >= self._schedule.due(hinted=bool(self._hinted)):
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
            self._undrawn = True
            self._schedule.note_change(began)
            self._sound(before[0] if before is not None else (), fresh[0], focus.run)
        took = time.thread_time() - worked  # on a busy machine, wall-clock time would include what others took
        self._unread = any(one.unread for one in fresh[0])
        if before is None and not (self._unread or focus.closely):
            self._schedule.let_keys_go_first(_KEYS_FIRST_SECONDS)
        active = any(one.state.active for one in fresh[0])
        self._schedule.note_reading(began, took, unread=self._unread, behind=monitor.is_behind, active=active)

    def _sound(self, before: Sequence[RunSnapshot], after: Sequence[RunSnapshot], in_view: str | None) -> None:
        """Notify the terminal of a crash, a stall or a finish; for a run that is not in view, also show a toast."""
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
        """Read a pending slice of the run in focus; return True if there is more to read at once."""
        hurry = self._catching_up or self._pending_bytes > _TOLERATED_BYTES or not self._log.floods(now)
        waits = self._unread and bool(focus.listed)  # the selected run's history waits for the other rows
        self._catching_up = bool(focus.closely) and self._pending_bytes > 0 and hurry and not waits
        if self._catching_up:
            pending = [run for run in focus.closely if monitor.read_on(run, 0.0)]
            left = [monitor.read_on(run, _SLICE_SECONDS if run == pending[0] else 0.0) for run in pending]
            self._pending_bytes = sum(left)
        return self._catching_up

    def _pause(self, focus: Focus, now: float) -> float:
        """Return the seconds until there is something to do, unless the worker is woken before."""
        until = self._schedule.due(hinted=bool(self._hinted))
        if self._undrawn and self._drawn.is_set():
            until = min(until, max(self._next_draw, self._pace.next))
        if focus.output is not None and focus.live:
            look = self._log.look_seconds(now, quiet=self._schedule.is_quiet(now))
            until = min(until, max(self._pace.next, now + look))
        return max(0.0, until - time.monotonic())


def differ(before: Sequence[RunSnapshot], after: Sequence[RunSnapshot]) -> bool:
    """True if the second snapshots show anything new; age alone counts only if its text changes."""
    if len(before) != len(after):
        return True
    pairs = zip(before, after, strict=True)
    return any(old is not new and (old != new or _age(old) != _age(new)) for old, new in pairs)


def _age(snapshot: RunSnapshot) -> float | None:
    """How long a run has been active, at the precision shown: silent runs are redrawn as they age, too."""
    if snapshot.started is None or not snapshot.state.active:
        return None
    return settled(snapshot.seen - (snapshot.attempt_started or snapshot.started)) // 1


_TICK_SECONDS, _GROWING_TICK_SECONDS, _QUIET_TICK_SECONDS = 0.025, 0.01, 0.25
"""Seconds between two checks of the size of the log in view; a new line waits half of that on average. Waking up costs
ten times as much as the check itself."""
_LIVELY_SECONDS = 2.0
"""A log that has not grown for this many seconds is not expected to grow soon."""
_TRICKLE_SECONDS, _TRICKLE_SECONDS_REMOTE = 0.03, 0.25
"""Seconds between two frames of a log that grows slowly."""
_FLOOD_BYTES = 4096
"""A log that grows by more than this between two checks is drawn four times a second instead of at once."""
_FLOOD_SECONDS = 1.0
"""Seconds after its last large growth at which a flood counts as over."""


class LogWatch:
    """Notices from its size that a file has grown: FSEvents reports nothing while the writer keeps the file open."""

    def __init__(self, stamp: Callable[[Path], tuple[int, ...] | None], *, slow: bool) -> None:
        """``stamp`` returns values that change whenever a log does, its size last; None if there is no file."""
        self._stamp = stamp
        self._path: Path | None = None
        self._slow = slow
        self._seen: tuple[int, ...] | None = None
        self._peeked: tuple[int, ...] | None = None
        self._next = 0.0
        self._trickle_seconds = _TRICKLE_SECONDS_REMOTE if slow else _TRICKLE_SECONDS
        self._flood_seconds = _DRAW_SECONDS_REMOTE if slow else _DRAW_SECONDS
        self._flooded = self._grew_at = -math.inf
        self._drawn = threading.Event()
        self._drawn.set()

    def drawn(self) -> None:
        """Note that the growth last reported has been drawn."""
        self._drawn.set()

    def floods(self, now: float) -> bool:
        """True if the file is growing fast."""
        return now - self._flooded < _FLOOD_SECONDS

    def look_seconds(self, now: float, *, quiet: bool) -> float:
        """Seconds until the next check; ``quiet``: no run has changed for a while."""
        grows = now - self._grew_at < _LIVELY_SECONDS
        return _QUIET_TICK_SECONDS if quiet else _GROWING_TICK_SECONDS if grows else _TICK_SECONDS

    def grew(self, path: Path | None, now: float) -> bool:
        """True if it is time to draw something new: a trickle at once, a flood four times a second."""
        if path != self._path:
            self._path, self._seen = path, None
        # A pause in the growth ends a flood early; over SSH the drawing rate applies.
        ends_early = not self._slow and self.floods(now)
        if path is None or not self._drawn.is_set() or (now < self._next and not ends_early):
            return False
        state = self._stamp(path)
        if state is None:
            return False
        waits, self._peeked = now < self._next and state != self._peeked, state
        if state == self._seen or waits:
            return False  # draw a flood that has paused at once: nothing more may come
        grown = state[-1] - self._seen[-1] if self._seen else 0
        if grown:
            self._grew_at = now
        self._seen = state
        if grown > _FLOOD_BYTES:
            self._flooded = now
        self._next = now + (self._flood_seconds if grown > _FLOOD_BYTES else self._trickle_seconds)
        self._drawn.clear()
        return True


class PausedQueues:
    """The paused queues, read again whenever a queue changes."""

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
